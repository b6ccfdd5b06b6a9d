#include "hidden.h"

void work_of_library() { ESATTO_SLICE(shared, "work of library"); }

void register_in_library() { esatto::register_categories(shared); }
