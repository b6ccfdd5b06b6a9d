// The header by itself, and its layouts.

#include "layout.h"

int main() { return perfetto_atomic_false ? 1 : 0; }
