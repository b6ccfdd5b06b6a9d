/* Calls that end the process, by number. */

#include "sound.h"

int main(int argc, char** argv) {
  CHECK(argc == 2);
  int number = atoi(argv[1]);
  struct PerfettoDsImpl* ds = PerfettoDsImplCreate();
  PERFETTO_ATOMIC(bool)* enabled;
  switch (number) {
    case 0:
      PerfettoTeInit();
      break;
    case 1:
      PerfettoDsImplRegister(ds, &enabled, NULL, 0);
      break;
    case 2:
      PerfettoProducerActivateTriggers((const char*[]){NULL}, 0);
      break;
    case 3:
      PerfettoTracingSessionInProcessCreate();
      break;
    case 4:
      PerfettoTracingSessionSystemCreate();
      break;
  }
  init();
  CHECK(register_as(ds, "sound.aborts", &enabled));
  switch (number) {
    case 5:
      PerfettoDsSetOnSetupCallback(ds, NULL);
      break;
    case 6:
      PerfettoDsSetOnStartCallback(ds, NULL);
      break;
    case 7:
      PerfettoDsSetOnStopCallback(ds, NULL);
      break;
    case 8:
      PerfettoDsSetOnDestroyCallback(ds, NULL);
      break;
    case 9:
      PerfettoDsSetOnFlushCallback(ds, NULL);
      break;
    case 10:
      PerfettoDsSetOnCreateTls(ds, NULL);
      break;
    case 11:
      PerfettoDsSetOnDeleteTls(ds, NULL);
      break;
    case 12:
      PerfettoDsSetOnCreateIncr(ds, NULL);
      break;
    case 13:
      PerfettoDsSetOnDeleteIncr(ds, NULL);
      break;
    case 14:
      PerfettoDsSetOnClearIncr(ds, NULL);
      break;
    case 15:
      PerfettoDsSetCbUserArg(ds, NULL);
      break;
  }
  return 0;
}
