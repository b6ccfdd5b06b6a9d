//! The programs that parse their own command lines, and facts about them that no option says.

use super::page::{Program, page};
use crate::commands::ui_bridge;
use crate::perfetto;

/// Returns the name and the text of each page. A program has a page by its own name, and one by the
/// command of `esatto` that is the same.
pub(super) fn pages() -> Vec<(String, String)> {
    let commands = PROGRAMS.iter().flat_map(|(program, command)| {
        [(program, program.name)].into_iter().chain(command.map(|command| (program, command)))
    });
    commands.map(|(program, command)| (command.replace(' ', "-"), page(program, command))).collect()
}

const SOCKETS: (&str, &str) = (
    "/run/perfetto/traced-producer.sock, /run/perfetto/traced-consumer.sock",
    "The sockets of the tracing service, if the folder exists. Programs that are recorded connect to the first, programs \
     that record to the second.",
);
const SOCKETS_IN_TMP: (&str, &str) = ("/tmp/perfetto-producer, /tmp/perfetto-consumer", "The sockets if it does not.");
const PRODUCER_ADDRESS: (&str, &str) =
    ("PERFETTO_PRODUCER_SOCK_NAME", "Address of the producer socket, instead of the standard one.");
const CONSUMER_ADDRESS: (&str, &str) =
    ("PERFETTO_CONSUMER_SOCK_NAME", "Address of the consumer socket, instead of the standard one.");
const NOTIFY_SOCKET: (&str, &str) =
    ("NOTIFY_SOCKET, WATCHDOG_USEC", "Set by a service manager, which is told about the start, the state and the end.");
const STATUS_OF_A_DAEMON: &str = "0 ended by SIGTERM or SIGINT, 1 failed. The reason is one line on standard error. With --background: 0 the process \
     that serves has started, 1 it has not.";
const ODDITIES: (&str, &str) = (
    "ESATTO_PERFETTO_ODDITIES",
    "With the value 1, the exit status is 0 also if the service refuses a session, as Perfetto's own command has it.",
);
const ALL: &[&str] = &[
    "esatto",
    "perfetto",
    "tracebox",
    "traced",
    "traced_probes",
    "traced_relay",
    "trigger_perfetto",
    "websocket_bridge",
];

/// Each program, with the command of `esatto` that is the same.
const PROGRAMS: &[(Program, Option<&str>)] = &[
    (
        Program {
            name: "traced",
            about: "the tracing service",
            help: esatto_daemon::TRACED_HELP,
            files: &[
                SOCKETS,
                SOCKETS_IN_TMP,
                (
                    "/var/lib/perfetto",
                    "The only folder for files that configs name (output_path), if systemd runs the program.",
                ),
                (
                    "/usr/lib/systemd/system/traced.service",
                    "The unit, whose sockets start the program when a client connects.",
                ),
            ],
            signals: &[
                (
                    "SIGTERM, SIGINT",
                    "Flush and stop all sessions, complete their files, and end. A second one ends at once.",
                ),
                ("SIGHUP", "Ignored."),
            ],
            environment: &[
                NOTIFY_SOCKET,
                ("TRACED_NOTIFY_FD", "A descriptor to which the program writes the byte 1 when clients can connect."),
            ],
            exit_status: STATUS_OF_A_DAEMON,
            examples: &[
                ("traced --background", "Start the service, on the standard sockets:"),
                (
                    "traced --set-socket-permissions perfetto:0666:perfetto:0660",
                    "Let all users be recorded, and the group perfetto record:",
                ),
            ],
            see_also: ALL,
        },
        Some("esatto traced"),
    ),
    (
        Program {
            name: "traced_probes",
            about: "data sources of the machine for traces",
            help: esatto_probes::TRACED_PROBES_HELP,
            files: &[
                ("/sys/kernel/tracing, /sys/kernel/debug/tracing", "Settings and events of ftrace."),
                (
                    "/run/esatto/probes, $XDG_RUNTIME_DIR/esatto/probes",
                    "Changes of ftrace that the next start undoes if this program is killed.",
                ),
                (
                    "/proc, /sys, /var/log/journal, /run/log/journal",
                    "Processes, counters and the journal, which it only reads.",
                ),
                ("/usr/lib/systemd/system/traced-probes.service", "The unit, which takes away all other rights."),
            ],
            signals: &[
                (
                    "SIGTERM, SIGINT",
                    "Flush and tear down all data sources, for at most 5 s, and end. A second one ends at once.",
                ),
                ("SIGHUP", "Ignored."),
            ],
            environment: &[
                NOTIFY_SOCKET,
                (
                    "TRACED_PROBES_NOTIFY_FD",
                    "A descriptor to which the program writes the byte 1 when the service knows its data sources.",
                ),
            ],
            exit_status: STATUS_OF_A_DAEMON,
            examples: &[
                ("traced_probes --background", "Offer the data sources of the machine to the tracing service:"),
                ("traced_probes --cleanup-after-crash", "Reset ftrace, which another program has left on:"),
            ],
            see_also: ALL,
        },
        Some("esatto probes"),
    ),
    (
        Program {
            name: "traced_relay",
            about: "lets the tracing service of another machine record this one",
            help: esatto_daemon::TRACED_RELAY_HELP,
            files: &[
                ("/run/perfetto/traced-producer.sock", "The socket of programs of this machine, if the folder exists."),
                ("/tmp/perfetto-producer", "The socket if it does not."),
                (
                    "/etc/default/traced-relay",
                    "Variables for the unit of systemd. TRACED_RELAY_OPTIONS in it are options.",
                ),
                ("/usr/lib/systemd/system/traced-relay.service", "The unit."),
            ],
            signals: &[("SIGTERM, SIGINT", "End."), ("SIGHUP", "Ignored.")],
            environment: &[
                NOTIFY_SOCKET,
                (
                    "TRACED_RELAY_NOTIFY_FD",
                    "A descriptor to which the program writes the byte 1 when programs can connect.",
                ),
            ],
            exit_status: STATUS_OF_A_DAEMON,
            examples: &[(
                "PERFETTO_RELAY_SOCK_NAME=192.168.0.1:20001 traced_relay",
                "Connect the programs of this machine to the service at 192.168.0.1:",
            )],
            see_also: ALL,
        },
        Some("esatto relay"),
    ),
    (
        Program {
            name: "perfetto",
            about: "record with the tracing service",
            help: perfetto::USAGE,
            files: &[SOCKETS, SOCKETS_IN_TMP],
            signals: &[("SIGTERM, SIGINT, SIGHUP", "End the recording, and write the rest of the trace.")],
            environment: &[PRODUCER_ADDRESS, CONSUMER_ADDRESS, ODDITIES],
            exit_status: "",
            examples: &[
                ("perfetto -t 10s -o trace.pftrace sched freq", "Record scheduling and frequencies for ten seconds:"),
                ("perfetto --txt -c session.cfg -o trace.pftrace", "Record what a config says:"),
                ("perfetto --query", "Show the programs, data sources and sessions of the service:"),
            ],
            see_also: ALL,
        },
        Some("esatto perfetto"),
    ),
    (
        Program {
            name: "trigger_perfetto",
            about: "activate triggers that tracing sessions wait for",
            help: perfetto::TRIGGER_USAGE,
            files: &[SOCKETS, SOCKETS_IN_TMP],
            signals: &[],
            environment: &[PRODUCER_ADDRESS],
            exit_status: "0 the service has the triggers, 1 it could not be reached within 10 s, or no trigger was named. \
                          The status does not tell whether a session waited for them.",
            examples: &[("trigger_perfetto slow_frame", "Activate the trigger slow_frame:")],
            see_also: ALL,
        },
        Some("esatto trigger"),
    ),
    (
        Program {
            name: "tracebox",
            about: "record, with daemons inside the same process",
            help: perfetto::TRACEBOX_USAGE,
            files: &[SOCKETS, SOCKETS_IN_TMP],
            signals: &[("SIGTERM, SIGINT, SIGHUP", "End the recording, and write the rest of the trace.")],
            environment: &[PRODUCER_ADDRESS, CONSUMER_ADDRESS, ODDITIES],
            exit_status: "That of the program in the first argument, or of the recording: see perfetto(1).",
            examples: &[(
                "tracebox -t 10s -o trace.pftrace sched/sched_switch",
                "Record the switches of threads for ten seconds, on a machine without daemons:",
            )],
            see_also: ALL,
        },
        None,
    ),
    (
        Program {
            name: "websocket_bridge",
            about: "let pages of Perfetto's UI record with the tracing service",
            help: ui_bridge::USAGE,
            files: &[SOCKETS, SOCKETS_IN_TMP],
            signals: &[("SIGTERM, SIGINT, SIGHUP", "End.")],
            environment: &[
                CONSUMER_ADDRESS,
                (
                    "ADB_SERVER_SOCKET",
                    "Address of the adb server: tcp:HOST:PORT or tcp:PORT [default: tcp:127.0.0.1:5037].",
                ),
            ],
            exit_status: "0 ended by a signal, 1 failed, 2 wrong usage.",
            examples: &[("ln -s esatto websocket_bridge", "Give the program esatto this name too:")],
            see_also: ALL,
        },
        None,
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn page_of(name: &str) -> String {
        let found = pages().into_iter().find(|(page, _)| page == name);
        found.unwrap_or_else(|| panic!("no page {name}")).1
    }

    /// Returns the options that a text names, as roff writes them.
    fn options(text: &str) -> Vec<String> {
        let words = text.split(|c: char| c.is_whitespace() || "[],.;:()=`|".contains(c));
        words.filter(|word| word.len() > 1 && word.starts_with('-')).map(|word| word.replace('-', "\\-")).collect()
    }

    #[test]
    fn a_page_names_all_options_of_the_help() {
        for (program, command) in PROGRAMS {
            for name in [Some(program.name), *command].into_iter().flatten() {
                let page = page_of(&name.replace(' ', "-"));
                for option in options(program.help) {
                    assert!(page.contains(&option), "{name}: {option}");
                }
                assert!(page.contains(&format!("\\fB{}\\fR", name.replace('-', "\\-"))), "{page}");
            }
        }
    }

    #[test]
    fn a_page_has_the_sections_that_readers_expect() {
        for (name, page) in pages() {
            for section in
                ["NAME", "SYNOPSIS", "DESCRIPTION", "ENVIRONMENT", "FILES", "\"EXIT STATUS\"", "\"SEE ALSO\""]
            {
                assert!(page.contains(&format!("\n.SH {section}\n")), "{name} has no {section}: {page}");
            }
            assert!(!page.contains("--help'"), "{name}");
        }
        assert!(page_of("perfetto").contains("\n.SS \"Without a config\"\n"));
        assert!(page_of("esatto-traced").contains("\\fBesatto traced\\fR [OPTIONS]"));
    }
}
