// The header by itself.

#include "perfetto_c.h"

int main() { return perfetto_atomic_false ? 1 : 0; }
