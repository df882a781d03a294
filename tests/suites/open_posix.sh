#!/bin/sh
# Builds the Open POSIX Test Suite, runs its tests of interfaces on this machine and in the guest, both as nobody, and prints those that pass here
# and not there (status none: the guest did not come to it).
#
# Needs a compiler, dpkg-source, and Debian's archive; run as root, which becomes nobody for the tests. Some twenty minutes.
set -eu
cd "$(dirname "$0")/../.."
[ "$(id -u)" = 0 ] || { echo "open_posix.sh: run as root: the tests run as nobody" >&2; exit 1; }
work=$PWD/build/open_posix
guest=$work/guest
mkdir -p "$work/lists/partial" "$guest/suite/bin" "$guest/lib64" "$guest/lib/x86_64-linux-gnu"

# From Debian's own archive, whatever this machine's sources are.
fetch() {
    key=/usr/share/keyrings/debian-archive-keyring.gpg
    archive=$(grep -hoE 'https?://[^ ]+/debian/?( |$)' /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null | head -1)
    echo "deb-src [signed-by=$key] ${archive:?no archive of Debian among the sources of apt} bookworm main" >"$work/sources.list"
    set -- -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=- -o Dir::State::lists="$work/lists"
    (cd "$work" && apt-get -qq "$@" update && apt-get -qq "$@" source posixtestsuite)
}

build_one() {
    name=$(echo "${1#conformance/interfaces/}" | sed 's,/,__,g; s,\.c$,,')
    gcc -w -O1 -std=gnu99 -D_GNU_SOURCE -D_XOPEN_SOURCE=600 -I include -I "$(dirname "$1")" -o "$guest/suite/bin/$name" "$1" -lrt -lpthread -lm \
        2>/dev/null || true
}

build() {
    cd "$(find "$work" -maxdepth 1 -name 'posixtestsuite*' -type d)"
    find conformance/interfaces -name '[0-9]*-*.c' ! -name '*-buildonly.c' | sort >"$work/sources"
    while read -r source; do build_one "$source"; done <"$work/sources"
    cd "$work"
    # More processes than a user may have here.
    (cd "$guest/suite/bin" && ls | grep -v '^shm_open__23-1$') >"$guest/suite/list"
    cp -L /lib64/ld-linux-x86-64.so.2 "$guest/lib64/"
    # pthread_exit loads libgcc_s.
    (cd /lib/x86_64-linux-gnu && cp -L libc.so.6 libm.so.6 libgcc_s.so.1 "$guest/lib/x86_64-linux-gnu/")
    # The guest's own commands have no xargs -P and no timeout that kills.
    cp -L /usr/bin/xargs /usr/bin/timeout /usr/bin/setpriv "$guest/suite/"
    ldd "$guest/suite/setpriv" | grep -oE '/lib/[^ ]+' | xargs -I{} cp -L {} "$guest/lib/x86_64-linux-gnu/"
}

# Runs one test in a folder of its own and prints its name and status.
one() {
    cat <<'END'
#!/bin/sh
place=/tmp/posix.$$
mkdir "$place" && cd "$place" || exit
status=0
"$1/timeout" -s KILL 60 "$1/bin/$2" >output 2>&1 </dev/null || status=$?
echo "$2 $status"
cd / && rm -rf "$place"
END
}

run='SUITE/setpriv --reuid=65534 --regid=65534 --clear-groups SUITE/xargs -P 4 -I{} SUITE/one SUITE {} < SUITE/list'

[ -n "$(find "$work" -maxdepth 1 -name 'posixtestsuite*' -type d)" ] || fetch
[ -s "$guest/suite/list" ] || build
one >"$guest/suite/one"
chmod -R a+rX "$guest"
chmod a+x "$guest/suite/one"

here=$(mktemp -d)
trap 'rm -rf "$here"' EXIT
cp -r "$guest/suite" "$here/"
chmod -R a+rX "$here"
echo "on this machine ..."
(cd / && sh -c "$(echo "$run" | sed "s,SUITE,$here/suite,g")") 2>/dev/null | grep -E '^[^ ]+ [0-9]+$' | sort >"$work/linux" || true
echo "in the guest ..."
# xargs ends with 123 when a test has failed.
./skink exec --memory 1024 --overlay "$guest" "$(echo "$run" | sed 's,SUITE,/suite,g')" >"$work/output" || [ $? = 123 ] || exit
grep -aoE '^[a-z_0-9]+__[^ ]+ [0-9]+$' "$work/output" | sort >"$work/skink" || true

passed=$(grep -c ' 0$' "$work/linux")
join "$work/linux" "$work/skink" | awk '$2 == 0 && $3 == 0' | wc -l | xargs -I{} echo "{} of $passed tests that pass on Linux pass in Skink; the others:"
join -a 1 "$work/linux" "$work/skink" | awk '$2 == 0 && $3 != 0 { print "  " $1, "status", $3 == "" ? "none" : $3 }'
