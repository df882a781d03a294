/* Memory and string functions for services, which have no C library. Part of service.o, so that programs which have one use that. */
#include <skink/memory.h>

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    void *start = to;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
    return start;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    char *end = (char *)to + bytes;
    const char *from_end = (const char *)from + bytes;
    if ((char *)to <= (const char *)from || (char *)to >= from_end)
        return memcpy(to, from, bytes);
    while (bytes--)
        *--end = *--from_end;
    return to;
}

void *memset(void *to, int byte, size_t bytes)
{
    void *start = to;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(bytes) : "a"(byte) : "memory");
    return start;
}

int memcmp(const void *left, const void *right, size_t bytes)
{
    const unsigned char *a = left, *b = right;
    for (; bytes; a++, b++, bytes--)
        if (*a != *b)
            return *a - *b;
    return 0;
}

void *memchr(const void *memory, int byte, size_t bytes)
{
    for (const unsigned char *at = memory; bytes; at++, bytes--)
        if (*at == (unsigned char)byte)
            return (void *)at;
    return NULL;
}

size_t strlen(const char *text)
{
    const char *end = text;
    while (*end)
        end++;
    return (size_t)(end - text);
}
