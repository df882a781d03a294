# Files and directories: create, link, rename, remove, modes, times, holes.
umask 022
mkdir -p a/b/c; touch a/b/c/file; find a | sort
ln -s a/b link; ls link; readlink link; ls -d link/c
ln a/b/c/file hard; stat -c '%h %n' hard a/b/c/file
echo content >hard; cat a/b/c/file
mv hard moved; cat moved
echo other >target; mv moved target; cat target; ls
mkdir d1 d2; touch d1/x; mv d1 d2; ls d2; ls d2/d1
rmdir d2 2>&1; rm -r d2; ls
mkdir full; touch full/x; rmdir full 2>&1
mv a a/b 2>&1
chmod 640 target; stat -c '%a %s' target; chmod u+s,g-r target; stat -c %a target
touch -d '2020-02-29 12:34:56' target; stat -c '%y' target; date -u -r target
dd if=/dev/zero of=sparse bs=1 count=0 seek=10M 2>/dev/null; stat -c '%s %b' sparse
printf end | dd of=sparse bs=1 seek=1048576 conv=notrunc 2>/dev/null; sha256sum sparse
truncate -s 5 target; stat -c %s target
(echo unlinked >gone; exec 3<gone; rm gone; cat <&3; ls gone 2>&1)
ln -s loop loop; cat loop 2>&1
ln -s nowhere dangling; cat dangling 2>&1; ls -l dangling | awk '{ print $1, $9, $10, $11 }'
cat a 2>&1; (cd target 2>&1); (echo x >a/b/c/file/x) 2>&1
cp -r a copy; diff -r a copy && echo same
cp -p target kept; [ kept -nt target ] || [ target -nt kept ] || echo same time
mkdir perm; chmod 0 perm; ls -ld perm | cut -c1-10; chmod 755 perm
touch 'name with blanks' "$(printf 'n\nl')"; ls | cat -v; rm -f n*
i=0; while [ $i -lt 300 ]; do echo $i >perm/file$i; i=$((i + 1)); done; ls perm | wc -l; cat perm/* | sort -n | tail -n 1; rm -r perm; ls -d perm 2>&1
chown 1000:100 target; stat -c '%u %g' target
pwd; cd a/b; pwd; cd ..; pwd; cd ../../..; pwd
