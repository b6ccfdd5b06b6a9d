/* Checks of the test programs. */

#ifndef CHECK_H_
#define CHECK_H_

#include <stdio.h>
#include <unistd.h>

/* Ends the program at once, because other threads and exit handlers may be running. */
#define CHECK(condition)                                                      \
  do {                                                                        \
    if (!(condition)) {                                                       \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      fflush(stderr);                                                         \
      _exit(1);                                                               \
    }                                                                         \
  } while (0)

#endif
