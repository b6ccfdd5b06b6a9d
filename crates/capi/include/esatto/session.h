/* Recording: sessions, in the program itself or of the machine's service. For C and C++; in C++, see esatto::Session. */

#ifndef ESATTO_SESSION_H_
#define ESATTO_SESSION_H_

#include <errno.h>
#include <stdio.h>

#include "proto.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What most sessions want: one buffer, track events by their categories, data sources by their names. Null and 0 stand for the usual. Lists end with a
 * null pointer. Whoever wants more serializes a TraceConfig, and takes esatto_session_start_with. */
struct esatto_config {
  uint32_t buffer_kb;                    /* 4096 */
  uint32_t duration_ms;                  /* until it is stopped */
  bool no_track_events;
  const char* const* categories;         /* patterns as net.*; all but those with the tags slow and debug */
  const char* const* without_categories; /* patterns; `categories` go before */
  const char* const* data_sources;
};

static inline void esatto_put_strings_(struct esatto_message* message, uint32_t field, const char* const* texts) {
  for (; texts && *texts; texts++) esatto_put_string(message, field, *texts);
}

static inline void esatto_put_data_source_(struct esatto_message* message, const char* name, const struct esatto_config* events) {
  struct esatto_message source = esatto_message_begin(message, 2), config = esatto_message_begin(&source, 1);
  esatto_put_string(&config, 1, name);
  if (events) {
    struct esatto_message track_event = esatto_message_begin(&config, 113);
    esatto_put_strings_(&track_event, 1, events->without_categories);
    if (events->categories) {
      esatto_put_strings_(&track_event, 2, events->categories);
    } else {
      esatto_put_string(&track_event, 2, "*");
      esatto_put_string(&track_event, 3, "slow");
      esatto_put_string(&track_event, 3, "debug");
    }
    esatto_message_end(&track_event);
  }
  esatto_message_end(&config);
  esatto_message_end(&source);
}

/* The serialized TraceConfig, to be freed with free(); null if there is no memory. */
static inline void* esatto_config_bytes(const struct esatto_config* config, size_t* size) {
  struct esatto_buffer buffer;
  struct esatto_message central;
  const char* const* name;
  esatto_buffer_open(&buffer);
  central = esatto_message_begin(&buffer.message, 1);
  esatto_put_uint(&central, 1, config->buffer_kb ? config->buffer_kb : 4096);
  esatto_message_end(&central);
  if (!config->no_track_events) esatto_put_data_source_(&buffer.message, "track_event", config);
  for (name = config->data_sources; name && *name; name++) esatto_put_data_source_(&buffer.message, *name, NULL);
  if (config->duration_ms) esatto_put_uint(&buffer.message, 3, config->duration_ms);
  return esatto_buffer_take(&buffer, size);
}

/* Starts a session of a backend that the program has been made known to, by a serialized TraceConfig. Data sources of this program record when it
 * returns. To be ended by PerfettoTracingSessionDestroy or esatto_session_finish. */
static inline struct PerfettoTracingSessionImpl* esatto_session_start_with(uint32_t backend, const void* config, size_t size) {
  struct PerfettoTracingSessionImpl* session =
      backend == ESATTO_SYSTEM ? PerfettoTracingSessionSystemCreate() : PerfettoTracingSessionInProcessCreate();
  PerfettoTracingSessionSetup(session, (void*)(uintptr_t)config, size);
  PerfettoTracingSessionStartBlocking(session);
  return session;
}

/* The same, by a config of the usual kind. */
static inline struct PerfettoTracingSessionImpl* esatto_session_start(uint32_t backend, const struct esatto_config* config) {
  size_t size;
  void* bytes = esatto_config_bytes(config, &size);
  struct PerfettoTracingSessionImpl* session = esatto_session_start_with(backend, bytes, size);
  free(bytes);
  return session;
}

struct esatto_file_ {
  FILE* file;
  int error;
};

static inline void esatto_on_read_(struct PerfettoTracingSessionImpl* session, const void* data, size_t size, bool has_more, void* user_arg) {
  struct esatto_file_* to = (struct esatto_file_*)user_arg;
  (void)session;
  (void)has_more;
  if (size && !to->error && fwrite(data, 1, size, to->file) != size) to->error = errno ? errno : EIO;
}

/* Reads what was recorded, and was not read before, into a file, which is created or replaced. Returns 0, or an error as errno has it. */
static inline int esatto_session_save(struct PerfettoTracingSessionImpl* session, const char* path) {
  struct esatto_file_ to = {fopen(path, "wb"), 0};
  if (!to.file) return errno;
  PerfettoTracingSessionReadTraceBlocking(session, esatto_on_read_, &to);
  if (fclose(to.file) != 0 && !to.error) to.error = errno;
  return to.error;
}

/* Stops a session, saves its trace and ends it. Returns 0, or an error as errno has it. */
static inline int esatto_session_finish(struct PerfettoTracingSessionImpl* session, const char* path) {
  int error;
  PerfettoTracingSessionStopBlocking(session);
  error = esatto_session_save(session, path);
  PerfettoTracingSessionDestroy(session);
  return error;
}

#ifdef __cplusplus
}
#endif

#endif /* ESATTO_SESSION_H_ */
