/* Does not compile with -DGOTO or -DSWITCH: a jump passes a slice into its block. */

#include <esatto/trace.h>

static struct esatto_category net = ESATTO_CATEGORY("net");

int load(const char* path) {
  int status = -1;
#ifdef GOTO
  if (!path) goto out;
  ESATTO_SLICE(&net, "parse");
  status = *path;
#else
  if (!path) goto out;
  {
    ESATTO_SLICE(&net, "parse");
    if (!*path) goto out;
    status = *path;
  }
#endif
out:
  return status;
}

int put(int kind) {
  switch (kind) {
    case 1: {
#ifdef SWITCH
    }
      ESATTO_SLICE(&net, "put");
      return 1;
    case 2: {
#else
      ESATTO_SLICE(&net, "put");
      return 1;
    }
    case 2: {
#endif
      return 2;
    }
    default:
      return 0;
  }
}
