# Permissions of ordinary users: search of directories, modes of open, sticky directories, set-id bits, chmod and chown, new files.
umask 022
# By its path: su asks the kernel for it, not the shell.
for folder in $(echo "$PATH" | tr : ' '); do
    [ -x "$folder/sh" ] && shell=$folder/sh && break
done
as() {
    user=$1
    shift
    su "$user" -s "$shell" -c "$*" 2>&1 | sed 's/^[^ ]*sh: //'
}
show() { stat -c '%n %A %U %G' "$@"; }

echo search
mkdir closed open
echo inside >closed/file
echo inside >open/file
chmod 666 closed/file
for mode in 700 744 711 755; do
    chmod $mode closed
    echo "mode $mode"
    as nobody 'cat closed/file; ls closed; cd closed && echo entered; test -e closed/file && echo there'
done
chmod 700 closed
cat closed/file
as nobody 'cat open/../closed/../open/file; ls closed/../open'
mkdir -p deep/one/two
echo deep >deep/one/two/file
ln -s deep/one/two/file link
chmod 700 deep/one
as nobody 'cat link; cat deep/one/two/file'
chmod 711 deep/one
as nobody 'cat link; ls deep/one; ls deep/one/two'

echo modes of open
for mode in 000 400 200 600 044 004 022 002 006; do
    echo text >file
    chown nobody file
    chmod $mode file
    echo "mode $mode"
    for user in nobody daemon; do
        as $user 'cat file; (echo more >>file) && echo written; (: >file) && echo emptied; test -r file && echo r; test -w file && echo w'
    done
done
rm -f file
echo groups
echo text >team
chown daemon:daemon team
chmod 040 team
as daemon 'cat team'
as nobody 'cat team'
chmod 070 team
chgrp nogroup team
as nobody 'cat team; test -x team && echo x'

echo sticky
mkdir shared
chmod 1777 shared
as nobody 'echo mine >shared/nobody; mkdir shared/dir'
as daemon 'echo mine >shared/daemon; rm -f shared/nobody; mv shared/nobody shared/taken; mv shared/daemon shared/nobody; rmdir shared/dir'
ls shared
as daemon 'mv shared/daemon shared/moved && rm shared/moved && echo removed'
as nobody 'rm -f shared/nobody && rmdir shared/dir && echo removed'
ls shared
chmod 777 shared
as nobody 'echo mine >shared/nobody'
as daemon 'rm -f shared/nobody && echo removed'
mkdir theirs
chown nobody theirs
chmod 1777 theirs
as daemon 'echo x >theirs/daemon'
as nobody 'rm -f theirs/daemon && echo the directory is mine'

echo names need a directory that may be written
mkdir plain
chmod 777 plain
mkdir plain/fixed plain/fixed/sub
echo x >plain/fixed/file
chmod 777 plain/fixed/sub
chmod 666 plain/fixed/file
as nobody 'touch plain/fixed/new; mkdir plain/fixed/new; ln -s x plain/fixed/new; mkfifo plain/fixed/new'
as nobody 'rm -f plain/fixed/file; rmdir plain/fixed/sub; mv plain/fixed/file plain/file; mv plain/fixed/sub plain/sub'
as nobody 'mv plain/fixed plain/renamed && ls plain/renamed'

echo chmod and chown
echo x >own
chown nobody:nogroup own
as nobody 'chmod 640 own && chmod u+s,o+r own'
show own
as daemon 'chmod 777 own; chown daemon own; chgrp daemon own'
as nobody 'chown daemon own; chgrp daemon own; chgrp nogroup own && echo same group'
show own
chgrp daemon own
as nobody 'chmod 2755 own'
show own
chown nobody:nogroup own
as nobody 'chmod 2755 own'
show own

echo set-id bits go
for user in nobody daemon root; do
    echo x >program
    chown nobody:nogroup program
    chmod 6777 program
    if [ $user = root ]; then echo y >>program; else as $user 'echo y >>program'; fi
    show program
done
chmod 6755 program
chown daemon program
show program

echo new files
mkdir new group
chmod 777 new
chgrp daemon group
chmod 2777 group
as nobody 'umask 077; : >new/secret; mkdir new/private; umask 0; : >new/public; mkdir new/all; : >group/file; mkdir group/dir'
show new/secret new/private new/public new/all group/file group/dir
as nobody 'cp new/public new/read; chmod 400 new/read; (: >>new/read) || echo refused; rm -f new/read && echo but removed'

echo devices and roots
as nobody 'mknod new/null c 1 3; chroot new true; mkfifo new/pipe && test -p new/pipe && echo pipe'
as nobody 'touch -t 202001010000 own; touch own' | sort -u
chmod 666 own
as daemon 'touch -t 202001010000 own; touch own && echo now'
