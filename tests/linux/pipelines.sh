# Pipelines, redirections, here-documents, exit statuses.
echo one two three | tr ' ' '\n' | sort -r | head -n 2
seq 1 1000 | awk '{ sum += $1 } END { print sum }'
cat <<END | sed 's/x/y/g'
x marks the spot
and $((6 * 7)) is the answer
END
cat <<'END'
$not expanded `here`
END
echo first >file; echo second >>file; cat <file
ls missing 2>errors; echo status $?; wc -l <errors
{ echo out; echo err >&2; } 2>&1 | sort
false | true; echo pipeline $?
(exit 7); echo subshell $?
true && echo and || echo or
false && echo and || echo or
! true; echo not $?
nonexistent-command 2>/dev/null; echo missing $?
echo noexec >script; ./script 2>/dev/null; echo denied $?
exec 3>third; echo to three >&3; exec 3>&-; cat third
echo to both | tee a b >/dev/null; cat a b
seq 100000 | tail -n 1
yes | head -n 3
seq 1 200000 | sort -n | uniq | wc -l
echo $(echo nested $(echo deeper))
set -- a 'b c' d; for x in "$@"; do echo "[$x]"; done
while read -r a b; do echo "$b-$a"; done <<END
1 2
3 4
END
