# Programs in Go: what age encrypts it decrypts, restic's backups are whole and come back, gron and fzf find what they look for.
#: package age,restic,gron,fzf,coreutils,diffutils
#: timeout 900
#: memory 768
cd /tmp
seq 200000 >data
age-keygen -o key 2>/dev/null && age -r "$(age-keygen -y key)" data >data.age && age -d -i key data.age | cmp - data && echo 'decrypted'
age-keygen -o other 2>/dev/null; age -d -i other data.age 2>/dev/null >/dev/null || echo "refused"
echo '{"a":[1,{"b":"c"}],"d":null}' | gron | tee lines; gron -u <lines
seq 5000 | fzf --filter=777 | head -n 3; printf 'src/main.go\nsrc/name.go\ndocs/go.md\n' | fzf -f 'mgo'
export RESTIC_PASSWORD=secret RESTIC_REPOSITORY=/tmp/repository GOMAXPROCS=4
restic init -q
mkdir -p tree/sub && for n in $(seq 60); do seq "$n" $((n * 90)) >"tree/sub/f$n"; done; ln -s f1 tree/sub/link
restic backup -q tree && seq 10 >tree/sub/f3 && rm tree/sub/f4 && restic backup -q tree
restic snapshots -q --json | grep -o '"paths"' | wc -l
restic check -q --read-data && echo 'the repository is whole'
restic restore -q latest --target /tmp/back && diff -r --no-dereference tree back/tree && echo 'the tree is back'
restic forget -q --keep-last 1 --prune && restic check -q && restic ls -q latest | wc -l
