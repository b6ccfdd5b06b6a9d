/* Sessions, which record: in the program itself or in the machine's service. For C and C++. In C++,
 * see esatto::Session. */

#ifndef ESATTO_SESSION_H_
#define ESATTO_SESSION_H_

#include <errno.h>
#include <stdio.h>

#include "proto.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Options of most sessions: one buffer, track events by categories, data sources by names. Null and
 * 0 stand for the default. Lists end with a null pointer. For other options, serialize a
 * TraceConfig and call esatto_session_start_with. */
struct esatto_config {
  uint32_t buffer_kb;                    /* default: 4096 */
  uint32_t duration_ms;                  /* default: until it is stopped */
  bool no_track_events;
  const char* const* categories;         /* such as net.*; default: all. With the tag slow or debug:
                                            only those that are named in full */
  const char* const* without_categories; /* full names, or patterns such as db.*, which leave nothing
                                            out beside a pattern of `categories` that matches */
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
    }
    esatto_put_string(&track_event, 3, "slow");
    esatto_put_string(&track_event, 3, "debug");
    esatto_message_end(&track_event);
  }
  esatto_message_end(&config);
  esatto_message_end(&source);
}

/* Returns the serialized TraceConfig, to be freed with free(). Null if there is no memory. */
static inline void* esatto_config_bytes(const struct esatto_config* config, size_t* size) {
  struct esatto_buffer buffer;
  struct esatto_message central;
  const char* const* name;
  struct esatto_config defaults;
  memset(&defaults, 0, sizeof(defaults));
  if (!config) config = &defaults;
  esatto_buffer_open(&buffer);
  central = esatto_message_begin(&buffer.message, 1);
  esatto_put_uint(&central, 1, config->buffer_kb ? config->buffer_kb : 4096);
  esatto_message_end(&central);
  if (!config->no_track_events) esatto_put_data_source_(&buffer.message, "track_event", config);
  for (name = config->data_sources; name && *name; name++) esatto_put_data_source_(&buffer.message, *name, NULL);
  if (config->duration_ms) esatto_put_uint(&buffer.message, 3, config->duration_ms);
  return esatto_buffer_take(&buffer, size);
}

/* Starts a session with a serialized TraceConfig (`esatto config convert` makes one of text), in a
 * backend that esatto_init has connected. The data sources of this program record when it returns.
 * End the session by PerfettoTracingSessionDestroy or esatto_session_finish. */
static inline struct PerfettoTracingSessionImpl* esatto_session_start_with(uint32_t backend, const void* config, size_t size) {
  struct PerfettoTracingSessionImpl* session =
      backend == ESATTO_SYSTEM ? PerfettoTracingSessionSystemCreate() : PerfettoTracingSessionInProcessCreate();
  PerfettoTracingSessionSetup(session, (void*)(uintptr_t)config, size);
  PerfettoTracingSessionStartBlocking(session);
  return session;
}

/* As esatto_session_start_with, with options. Null stands for the default of each. */
static inline struct PerfettoTracingSessionImpl* esatto_session_start(uint32_t backend, const struct esatto_config* config) {
  size_t size;
  void* bytes = esatto_config_bytes(config, &size);
  struct PerfettoTracingSessionImpl* session = esatto_session_start_with(backend, bytes, size);
  free(bytes);
  return session;
}

struct esatto_file_ {
  FILE* file;
  const char* path;
  bool has_data, has_old_data;
  int error;
};

static inline void esatto_on_read_(struct PerfettoTracingSessionImpl* session, const void* data, size_t size, bool has_more, void* user_arg) {
  struct esatto_file_* to = (struct esatto_file_*)user_arg;
  (void)session;
  (void)has_more;
  ESATTO_ORDER_AFTER_(to);
  if (size && !to->has_data && !to->error) {
    to->has_data = true;
    if (to->has_old_data) to->file = freopen(to->path, "wb", to->file);
    if (!to->file) to->error = errno ? errno : EIO;
  }
  if (size && !to->error && fwrite(data, 1, size, to->file) != size) to->error = errno ? errno : EIO;
  ESATTO_ORDER_BEFORE_(to);
}

static inline int esatto_read_into_(struct PerfettoTracingSessionImpl* session, const char* path) {
  /* Creates the file, if there is none. */
  struct esatto_file_ to = {fopen(path, "wbx"), path, false, false, 0};
  const bool is_new = to.file != NULL;
  if (!is_new) to.file = fopen(path, "ab");
  if (!to.file) return errno;
  /* A pipe has no position, and its reader must not see it closed and opened again. */
  to.has_old_data = !is_new && fseek(to.file, 0, SEEK_END) == 0 && ftell(to.file) > 0;
  ESATTO_ORDER_BEFORE_(&to);
  PerfettoTracingSessionReadTraceBlocking(session, esatto_on_read_, &to);
  ESATTO_ORDER_AFTER_(&to);
  if (to.file && fclose(to.file) != 0 && !to.error) to.error = errno;
  if (!to.has_data && is_new) remove(path);
  return to.error || to.has_data ? to.error : ENODATA;
}

/* Writes the packets that were not read before into a file, which it creates or replaces. A session
 * that still records is flushed before, so that all events up to now are in it. If some packets
 * were read before, the file alone is no readable trace, because its packets refer to names in
 * those: append it to them, in the order of reading.
 *
 * Returns 0, or an error number of errno. It is ENODATA, and the file stays as it was, if there
 * is no packet: the service did not take the session, or has ended, or all packets were read
 * before. */
static inline int esatto_session_save(struct PerfettoTracingSessionImpl* session, const char* path) {
  PerfettoTracingSessionFlushBlocking(session, 0);
  return esatto_read_into_(session, path);
}

/* Stops a session, saves its trace and ends it. Returns 0, or an error number of errno, as
 * esatto_session_save does. */
static inline int esatto_session_finish(struct PerfettoTracingSessionImpl* session, const char* path) {
  int error;
  PerfettoTracingSessionStopBlocking(session);
  error = esatto_read_into_(session, path);
  PerfettoTracingSessionDestroy(session);
  return error;
}

#ifdef __cplusplus
}
#endif

#endif /* ESATTO_SESSION_H_ */
