# GnuPG: a key made by the agent, which gpg talks to by a socket; signatures, files for a key and files for a password.
#: package gpg,gpg-agent,gpgv
export GNUPGHOME=/tmp/gnupg
mkdir -m 700 $GNUPGHOME
seq 20000 >/tmp/text
gpg --quiet --batch --passphrase '' --quick-gen-key 'Skink <skink@example.org>' ed25519 default never 2>/dev/null && echo made
gpg --quiet --batch --passphrase '' --quick-add-key $(gpg --list-keys --with-colons | sed -n 's/^fpr:::::::::\(.*\):/\1/p;' | head -n 1) cv25519 encr never && echo added
gpg --list-secret-keys --with-colons | cut -d: -f1,3,4,10,12 | grep -v '^[fg]' | sed 's/:$//;s/^\(...:[0-9]*:[0-9]*\):[^:]*/\1/'
gpg --quiet --batch --armor --detach-sign /tmp/text && echo signed
gpg --verify /tmp/text.asc /tmp/text 2>&1 | grep -c 'Good signature from "Skink <skink@example.org>"'
gpg --export >/tmp/ring.gpg
gpgv --keyring /tmp/ring.gpg /tmp/text.asc /tmp/text 2>&1 | grep -c 'Good signature'
echo more >>/tmp/text
gpg --verify /tmp/text.asc /tmp/text 2>&1 | grep -c 'BAD signature'
gpg --quiet --batch --trust-model always --recipient skink@example.org --encrypt /tmp/text && echo encrypted
gpg --quiet --batch --decrypt /tmp/text.gpg | cmp - /tmp/text && echo decrypted
rm /tmp/text.gpg
gpg --quiet --batch --pinentry-mode loopback --passphrase secret -c /tmp/text && echo locked
gpg --quiet --batch --pinentry-mode loopback --passphrase wrong --decrypt /tmp/text.gpg 2>/dev/null || echo refused
# The agent remembers no password of a file.
gpgconf --kill gpg-agent
gpg --quiet --batch --pinentry-mode loopback --passphrase secret --decrypt /tmp/text.gpg | cmp - /tmp/text && echo unlocked
gpgconf --kill gpg-agent
