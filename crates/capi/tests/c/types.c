/* The number of types of data sources is limited (docs/spec/c-abi.md §5). */

#include "common.h"

int main(int argc, char** argv) {
  begin_test(argc, argv);
  init_producer();
  int registered = 0;
  for (int i = 0; i < 40; i++) {
    PERFETTO_ATOMIC(bool)* flag = NULL;
    struct bytes descriptor = {{0}, 0};
    put_text(&descriptor, 1, "c.many");
    if (PerfettoDsImplRegister(PerfettoDsImplCreate(), &flag, descriptor.at, descriptor.len)) {
      CHECK(flag && !*flag);
      registered++;
    }
  }
  CHECK(registered == 32);
  return 0;
}
