/* A program and a library with copies of one category. The trace goes to the file of the first
 * argument. */

#include "hidden.h"

#include "check.h"

int main(int argc, char** argv) {
  CHECK(argc == 2);
  esatto::init(esatto::Backend::in_process);
  esatto::register_categories(shared);
  auto session = esatto_session_start(ESATTO_IN_PROCESS, nullptr);
  { ESATTO_SLICE(shared, "work of program"); }
  for (int i = 0; i < 3; i++) work_of_library();
  register_in_library();
  work_of_library();
  CHECK(esatto_session_finish(session, argv[1]) == 0);
}
