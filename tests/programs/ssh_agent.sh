# The agent of OpenSSH: keys in a process of their own, asked for signatures by a socket in a folder that nobody else may enter.
#: package openssh-client
cd /tmp
eval $(ssh-agent -s) >/dev/null
ssh-add -l
for type in ed25519 rsa ecdsa; do
    ssh-keygen -q -t $type -N '' -C "key of $type" -f /tmp/key.$type
    ssh-add -q /tmp/key.$type && echo added $type
done
ssh-add -l | sed 's/SHA256:[^ ]*/FINGERPRINT/'
[ "$(ssh-add -l | cut -d' ' -f2 | sort)" = "$(for key in /tmp/key.*.pub; do ssh-keygen -lf $key; done | cut -d' ' -f2 | sort)" ] && echo the same fingerprints
ssh-add -L | cut -d' ' -f1,3-
# The agent signs: the private key's file has gone.
mv /tmp/key.ed25519 /tmp/hidden
seq 1000 >/tmp/text
ssh-keygen -q -Y sign -f /tmp/key.ed25519.pub -n file /tmp/text
echo "me $(cat /tmp/key.ed25519.pub)" >/tmp/allowed
ssh-keygen -Y verify -f /tmp/allowed -I me -n file -s /tmp/text.sig </tmp/text | sed 's/SHA256:.*/FINGERPRINT/'
echo changed >>/tmp/text
ssh-keygen -Y verify -f /tmp/allowed -I me -n file -s /tmp/text.sig </tmp/text >/dev/null 2>&1 || echo refused
ssh-add -T /tmp/key.ed25519.pub && echo usable
ssh-add -d /tmp/key.rsa 2>/dev/null && ssh-add -l | grep -c .
ssh-add -D 2>&1
ssh-add -l
ssh-agent -k >/dev/null && echo ended
until ! [ -e "$SSH_AUTH_SOCK" ]; do sleep 0.1; done
ssh-add -l 2>&1 || echo gone
