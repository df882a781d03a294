# bash and dash: arrays, coprocesses, process substitution, traps, jobs, here documents, arithmetic, globbing, and 500 subshells.
#: package bash,dash,coreutils,grep
cat >/tmp/b.sh <<'B'
set -u
declare -A ages=([ann]=31 [bob]=27); ages[cy]=45
for name in $(printf '%s\n' "${!ages[@]}" | sort); do echo "$name ${ages[$name]}"; done
list=(a 'b c' d); echo "${#list[@]} ${list[1]} ${list[@]: -1}"; unset 'list[0]'; echo "${!list[@]}"
coproc up { while read -r l; do echo "${l^^}"; done; }
echo hello >&"${up[1]}"; read -r answer <&"${up[0]}"; echo "$answer"
exec {up[1]}>&-; wait "$up_PID"; echo "coproc $?"
diff <(seq 5) <(seq 5 | sed 's/3/three/'); echo "status $?"
mkfifo /tmp/end; cat > >(tr a-z A-Z; echo end; echo >/tmp/end) <<< 'to a process'; read -r _ </tmp/end
f() { local x=1; trap 'echo "return of f, x=$x"' RETURN; x=2; }; f; trap - RETURN
trap 'echo usr1' USR1; kill -USR1 $$; trap 'echo "error on line"' ERR; false; trap - ERR
( trap 'echo bye' EXIT; exit 3 ); echo "subshell $?"
set -o pipefail; true | false | true; echo "pipe ${PIPESTATUS[*]}"; set +o pipefail
sleep 30 & sleep 31 & jobs -r | wc -l; kill %1 %2; wait %1 2>/dev/null; echo "killed $?"; wait
shopt -s extglob nullglob globstar; mkdir -p /tmp/g/x/y; touch /tmp/g/{a1,a2,b1} /tmp/g/x/y/c; cd /tmp/g
echo !(a*) ; echo **/c; echo none*; echo {01..10..3}; echo "${PWD//\//_}"; v=path.tar.gz; echo "${v%%.*} ${v##*.} ${v/tar/zip}"
printf -v out '%q' 'it is "quoted" $x'; echo "$out"; [[ abc123 =~ ([a-z]+)([0-9]+) ]] && echo "${BASH_REMATCH[2]}"
echo $((2**40 + 0x10 + 8#17)) $((5 > 3 ? 1 : 2)); let 'n = 5, n <<= 2'; echo $n
mapfile -t lines < <(seq 1000); echo "${#lines[@]} ${lines[999]}"
read -r -t 0.1 nothing < <(sleep 1); echo "timed out $(( $? > 128 ))"
i=0; while ((i < 500)); do x=$(echo $i); ((i++)); done; echo "$x"
exec 7<>/tmp/g/rw; echo data >&7; exec 7>&-; cat /tmp/g/rw
ulimit -n 20; (ulimit -n); { bash -c 'kill -SEGV $$'; } 2>/dev/null; echo "status $?"
select_test() { select x in one two; do echo "$x"; break; done; }; echo 2 | select_test 2>/dev/null
printf '%s\n' {a..c}{1..2} | while IFS= read -r l; do [ "$l" = b2 ] && continue; printf '%s ' "$l"; done; echo
B
bash /tmp/b.sh 2>&1
cat >/tmp/d.sh <<'D'
x=$(cat <<X
here $((6 * 7)) $(echo nested)
X
); echo "$x"
f() { echo "$# $*"; shift; echo "$1"; }; f a 'b c' d
trap 'echo term' TERM; kill -TERM $$
(exec 3>/tmp/three; echo out >&3); cat /tmp/three
a=1; a=2 sh -c 'echo $a'; echo $a; export a; sh -c 'echo $a'
case file.c in *.h) echo h ;; *.[co]) echo c ;; esac
set -- x y z; while [ $# -gt 0 ]; do printf '%s ' "$1"; shift; done; echo
for i in 1 2 3; do echo $i; done | { s=0; while read n; do s=$((s + n)); done; echo $s; }
{ echo a; echo b >&2; } 2>&1 | sort | tr '\n' ' '; echo
trap - TERM; sleep 100 & kill $!; wait $!; echo "wait $?"
set -e; (false; echo not reached) || echo caught; umask 027; umask
getopts ab: o -a -b v && echo "$o"; command -v cd; type nosuch 2>/dev/null || echo "no such"
eval 'y=$x; echo ${#y}'; echo ${unset-default} ${x:+set} ${nothing:=assigned}; echo "$nothing"
D
dash /tmp/d.sh 2>&1
i=0; while [ $i -lt 500 ]; do (exit 3) && echo wrong; i=$((i + 1)); done; echo $i
