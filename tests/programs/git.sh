# git: histories, branches, merges, rebases, clones and packs, whose hashes say that every byte is the same.
#: package git
#: timeout 600
export GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.org
export GIT_AUTHOR_DATE='2024-01-01T00:00:00Z' GIT_COMMITTER_DATE='2024-01-01T00:00:00Z' GIT_CONFIG_NOSYSTEM=1
cd /tmp
git init -q -b main work
cd work
for n in $(seq 40); do
    mkdir -p "d$((n % 5))"
    seq "$n" $((n * 50)) >"d$((n % 5))/file$n"
done
git add .
git commit -q -m 'forty files'
git checkout -q -b side
for n in $(seq 8); do
    echo "line $n" >>d1/file1
    git commit -q -a -m "side $n"
done
git checkout -q main
sed -i 's/^2$/two/' d2/file2
git commit -q -a -m 'main edits'
echo more >new
git add new
git commit -q -m 'a new file'
git merge -q -m merged side
git log --oneline --graph | head -n 5
git checkout -q -b again HEAD~1
git rebase -q side
git log --format=%H%s | head -n 3

# A conflict is told, and solved by hand.
git checkout -q -b left main
echo left >new
git commit -q -a -m left
git checkout -q -b right main
echo right >new
git commit -q -a -m right
git merge left || git status --short
echo both >new
git commit -q -a -m both
git cat-file -p HEAD | sed -n 1,3p

git gc -q --aggressive --prune=now
git fsck --full && git count-objects -v | grep -E 'count|in-pack|garbage'
git clone -q file:///tmp/work /tmp/clone
git clone -q --bare /tmp/work /tmp/bare.git
cd /tmp/clone
git remote add bare /tmp/bare.git
echo pushed >pushed
git add pushed
git commit -q -m pushed
git push -q bare HEAD:refs/heads/pushed
git --git-dir=/tmp/bare.git rev-parse pushed
git stash list
echo dirty >new
git stash -q
cat new
git stash pop -q
cat new
git worktree add -q /tmp/tree pushed 2>/dev/null || git worktree add -q -b tree /tmp/tree
cat /tmp/tree/pushed
git archive --format=tar HEAD | sha256sum
git bisect start HEAD HEAD~3 >/dev/null && git bisect run sh -c 'test ! -f pushed' | grep 'first bad'
git grep -c 'line 8' HEAD
git blame -s d1/file1 | tail -n 2
