/* The time of the default clock, and the id of the thread. */

#include <sys/syscall.h>
#include <time.h>

#include "common.h"

static uint64_t boot_ns(void) {
  struct timespec t;
  CHECK(clock_gettime(CLOCK_BOOTTIME, &t) == 0);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void* has_an_id_of_its_own(void* of_main) {
  CHECK(PerfettoGetThreadIdImpl() == (pid_t)syscall(SYS_gettid));
  CHECK(PerfettoGetThreadIdImpl() != *(pid_t*)of_main);
  return NULL;
}

int main(int argc, char** argv) {
  begin_test(argc, argv);
  CHECK(PerfettoDsGetDefaultClockId() == 6);
  uint64_t last = 0;
  for (int i = 0; i < 1000; i++) {
    struct PerfettoDsTimestamp ts = PerfettoDsGetTimestamp();
    CHECK(ts.clock_id == PerfettoDsGetDefaultClockId() && ts.value > 0 && ts.value >= last);
    last = ts.value;
  }
  uint64_t before = boot_ns();
  struct PerfettoTeTimestamp te = PerfettoTeGetTimestamp();
  CHECK(te.clock_id == PERFETTO_TE_TIMESTAMP_TYPE_BOOT);
  /* The clock may differ a little from the kernel's. */
  CHECK(te.value + 1000000 >= before && te.value <= boot_ns() + 1000000);
  pid_t own = PerfettoGetThreadIdImpl();
  CHECK(own == getpid());
  on_a_thread(has_an_id_of_its_own, &own);
  return 0;
}
