/* Functions of a plugin. */

#ifndef PLUGIN_H_
#define PLUGIN_H_

#include <stdbool.h>

void plugin_begin(void);
bool plugin_is_on(void);
void plugin_work(int number);
void plugin_end(void);

#endif
