/* Memory and string functions for services: those that gcc itself calls, and two more. Defined as in ISO C.
 * Programs with a C library include <string.h> instead. */
#ifndef SKINK_MEMORY_H
#define SKINK_MEMORY_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes);
void *memmove(void *to, const void *from, size_t bytes);
void *memset(void *to, int byte, size_t bytes);
int memcmp(const void *left, const void *right, size_t bytes);
void *memchr(const void *memory, int byte, size_t bytes);
size_t strlen(const char *text);

#endif
