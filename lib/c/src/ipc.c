/* The IPC primitives: registers as abi::message defines them. */
#include <skink/ipc.h>

/* Executes the primitive `number`. A received message is stored in `in`. */
static int primitive(uint64_t number, endpoint_t to, const message *out, message *in, endpoint_t from)
{
    uint64_t w0 = out->words[0], w1 = out->words[1], w2 = out->words[2];
    int64_t status = (int64_t)number;
    register uint64_t w3 __asm__("r10") = out->words[3];
    register uint64_t w4 __asm__("r8") = out->words[4];
    register uint64_t w5 __asm__("r9") = out->words[5];
    register uint64_t w6 __asm__("r12") = out->words[6];
    register uint64_t peer __asm__("r13") = to | (uint64_t)out->label << 32;
    register uint64_t next __asm__("r14") = from;
    __asm__ volatile("syscall"
                     : "+a"(status), "+D"(w0), "+S"(w1), "+d"(w2), "+r"(w3), "+r"(w4), "+r"(w5), "+r"(w6), "+r"(peer),
                       "+r"(next)
                     :
                     : "rcx", "r11", "memory");
    if (status < 0)
        return (int)status;
    if (in)
        *in = (message){(endpoint_t)peer, (uint32_t)(peer >> 32), {w0, w1, w2, w3, w4, w5, w6}};
    return OK;
}

static const message EMPTY;

int skink_send(endpoint_t to, const message *m)
{
    return primitive(SKINK_CALL_SEND, to, m, NULL, SKINK_ENDPOINT_NONE);
}

int skink_receive(endpoint_t from, message *m)
{
    return primitive(SKINK_CALL_RECEIVE, from, &EMPTY, m, SKINK_ENDPOINT_NONE);
}

int skink_sendrec(endpoint_t to, message *m)
{
    return primitive(SKINK_CALL_SENDREC, to, m, m, SKINK_ENDPOINT_NONE);
}

int skink_notify(endpoint_t to)
{
    return primitive(SKINK_CALL_NOTIFY, to, &EMPTY, NULL, SKINK_ENDPOINT_NONE);
}

int skink_sendnb(endpoint_t to, const message *m)
{
    return primitive(SKINK_CALL_SENDNB, to, m, NULL, SKINK_ENDPOINT_NONE);
}

int replyrec(endpoint_t to, message *m, endpoint_t from)
{
    return primitive(SKINK_CALL_REPLYREC, to, m, m, from);
}

int sendwait(endpoint_t to, message *m, endpoint_t from)
{
    return primitive(SKINK_CALL_SENDWAIT, to, m, m, from);
}

/* Executes the primitive `number` with the message in memory, to which the kernel may write. */
static int primitive33(uint64_t number, endpoint_t peer, const message *m)
{
    int64_t status;
    __asm__ volatile("int %1"
                     : "=a"(status)
                     : "i"(0x21), "a"(number), "D"((uint64_t)peer), "S"(m)
                     : "memory");
    return status < 0 ? (int)status : OK;
}

int send33(endpoint_t to, const message *m)
{
    return primitive33(SKINK_CALL_SEND, to, m);
}

int receive33(endpoint_t from, message *m)
{
    return primitive33(SKINK_CALL_RECEIVE, from, m);
}

int sendrec33(endpoint_t to, message *m)
{
    return primitive33(SKINK_CALL_SENDREC, to, m);
}

int notify33(endpoint_t to)
{
    return primitive33(SKINK_CALL_NOTIFY, to, NULL);
}

int sendnb33(endpoint_t to, const message *m)
{
    return primitive33(SKINK_CALL_SENDNB, to, m);
}
