/* What must hold. */

#ifndef CHECK_H_
#define CHECK_H_

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                  \
  do {                                                                    \
    if (!(condition)) {                                                   \
      fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

#endif
