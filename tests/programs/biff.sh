# biff says whether the user of a terminal wants to hear of new mail, and keeps it in the terminal's mode. (Its daemon, comsat, is told of mail by
# UDP, and there is no network yet.)
#: package biff,bsdutils,coreutils
cd /tmp
cat >wish <<'END'
biff
biff y
biff
stat -c '%A' "$(tty)" | cut -c2-4
sh -c biff
biff n
biff
stat -c '%A' "$(tty)" | cut -c2-4
END
script -qec 'sh wish' /dev/null </dev/null
echo "status $?"
biff </dev/null >output 2>&1
echo "without a terminal: status $?"
