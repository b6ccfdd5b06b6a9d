//! Text for `--help`.

pub(crate) const USAGE: &str = "\
Usage: perfetto [OPTION]... [GROUP/EVENT | CATEGORY]...
       perfetto -c CONFIG [--txt] -o FILE

Records with the running tracing service. This is Esatto's command; it takes the options of Perfetto's.

Recording:
  -c, --config FILE        config of the session; - for stdin, :test for a short trial
      --txt                the config is text, not encoded
      --txt-lossy          as --txt, but leaves out fields and values that are unknown here
  -o, --out FILE           trace file; - for stdout. Snapshots of CLONE_SNAPSHOT triggers go to FILE.0, FILE.1, ...
      --no-clobber         fail if the trace file exists
      --add-attribute KEY[=VALUE]
                           note something in the trace; may be repeated
  -d, --background         print the pid of a process in the background and end. `kill -TERM PID` ends the recording
  -D, --background-wait    as --background, but wait up to 30 s until all data sources have started.
                           Exit status: 0 started, 1 failed, 2 not started in time
      --notify-fd FD       write one byte to this descriptor when all data sources have started: 0, or 1 for a failure

Without a config:
  -t, --time N             duration, with unit: ms s m h [default: 10s; 0s: until Ctrl-C]
  -b, --buffer N           size of the buffer, with unit: k kb m mb g gb [default: 32mb]
  -s, --size N             stream into the file, up to this size
  -a, --app NAME           app of atrace; may be repeated
  GROUP/EVENT              event of the kernel, for example sched/sched_switch
  CATEGORY                 category of atrace, for example sched or freq

Sessions that run:
      --query [--long]     show the programs, data sources and sessions of the service
      --query-raw          the same as an encoded TracingServiceState
      --clone ID           save a copy of a session, which goes on
      --clone-by-name NAME the same for the session with this unique_session_name
      --clone-for-bugreport
                           with one of these: leave out the session's trace filter
      --save-for-bugreport save a copy of the session with the highest bugreport_score
      --save-all-for-bugreport
                           save copies of all sessions with a score
      --detach KEY         start a session that writes into a file, and leave it
      --attach KEY [--stop]
                           wait for the end of such a session, or end it
      --is_detached KEY    exit status: 0 there is such a session, 2 there is none, 1 error

      --version, -h, --help

Accepted for scripts: --alert-id, --config-id, --config-uid, --subscription-id N, --no-guardrails, --reset-guardrails.
Only on Android: --upload, --dropbox TAG.

Exit status: 0 recorded, 1 failed or refused. ESATTO_PERFETTO_ODDITIES=1 brings back the 0 that Perfetto's own command
returns for sessions and clones that the service refuses, and for traces that could not be written.
";
