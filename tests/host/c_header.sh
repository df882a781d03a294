# The C interface as others use it: the header compiles with all warnings, before and after a C library's headers; lib/c/README.md's commands
# build a service; and a program with a C library links the library.
lib=$(dirname "$SKINK")/lib/c
warn='-Wall -Wextra -Werror -pedantic'

for headers in '' '#include <errno.h>' '#include <string.h>'; do
    printf '%s\n#include <skink.h>\n%s\nint main(void) { return notify(NONE) == OK; }\n' "$headers" '#include <errno.h>' >program.c
    for standard in c11 c17 gnu11; do
        gcc -std=$standard $warn -I "$lib/include" -c program.c
    done
done
printf '#include <skink/chardev.h>\n' >kit.c
gcc -std=c11 $warn -ffreestanding -I "$lib/include" -c kit.c

cp -r "$lib/include" "$lib/src" .
cp "$lib/examples/lp.c" driver.c
sed -n '/^    CFLAGS=/,/^    gcc -static/s/^    //p' "$lib/README.md" >build.sh
grep -q nostdlib build.sh
sh -eu build.sh
readelf -h driver | grep -q 'Type: *EXEC'
if readelf -l driver | grep -q INTERP; then
    echo 'the driver wants an interpreter'
    exit 1
fi

cat >sockets.c <<'C'
#define SKINK_LONG_NAMES
#include <skink.h>
#include <stdio.h>
#include <sys/socket.h>

int main(void)
{
    message m = {.label = 1};
    return skink_send(SKINK_ENDPOINT_RS, &m) == OK && send(0, &m, sizeof m, 0) > 0 && puts("sent") > 0;
}
C
gcc -std=gnu11 $warn -static -I include -o sockets sockets.c libskink.a

# The header of M3-IPC, in C and in C++, beside a C library's headers.
cat >m3ipc.c <<'C'
#include <sys/socket.h>
#include <unistd.h>
#include <m3ipc.h>
int main(void)
{
    message m = {.m_type = 1};
    m.m9_ull1 = 1;
    return _ENDPOINT_P(_ENDPOINT(3, -35)) == -35 && mnx_send(ANY, &m) == EMOLBADSRCDST;
}
C
for standard in c11 c17 gnu11; do
    gcc -std=$standard $warn -I "$lib/../m3ipc/include" -c m3ipc.c
done
printf '#include <m3ipc.h>\n' >m3ipc.cc
if command -v g++ >/dev/null; then
    g++ -std=c++11 -Wall -Wextra -Werror -I "$lib/../m3ipc/include" -c m3ipc.cc
fi
