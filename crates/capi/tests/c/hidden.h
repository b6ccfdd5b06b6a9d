#include <esatto/trace.hpp>

/* With hidden visibility the program and the library have a copy each. */
inline esatto::Category shared{"shared", "Of the program and the library"};

__attribute__((visibility("default"))) void work_of_library();
__attribute__((visibility("default"))) void register_in_library();
