/* The header alone, and its layouts. */

#include "layout.h"

int main(void) { return perfetto_atomic_false ? 1 : 0; }
