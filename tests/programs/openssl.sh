# OpenSSL: digests, ciphers, keys, certificates that verify, signed and encrypted messages.
#: package openssl
cd /tmp
seq 100000 >data
for d in sha256 sha512 sha3-256 blake2b512 md5; do openssl dgst -r "-$d" data; done
for c in aes-256-cbc aes-128-ctr chacha20 camellia-192-cbc; do
    openssl enc -"$c" -K 00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff -iv 0102030405060708090a0b0c0d0e0f10 -in data -out "$c" 2>/dev/null && sha256sum "$c"
done
openssl enc -aes-256-cbc -pbkdf2 -pass pass:secret -in data | openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:secret | cmp - data && echo deciphered
openssl enc -d -aes-256-cbc -pbkdf2 -pass pass:wrong -in data 2>/dev/null || echo 'refused'
openssl genpkey -quiet -algorithm RSA -pkeyopt rsa_keygen_bits:1024 -out rsa.pem && openssl rsa -in rsa.pem -check -noout
openssl genpkey -algorithm ED25519 -out ed.pem && openssl pkey -in ed.pem -pubout | head -n 1
openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out ca.key
openssl req -new -x509 -key ca.key -subj '/CN=Test authority' -days 3650 -addext 'basicConstraints=critical,CA:TRUE' -out ca.pem
openssl req -new -key ed.pem -subj '/CN=host.example' -out host.csr && openssl req -in host.csr -noout -verify -subject 2>&1
openssl x509 -req -in host.csr -CA ca.pem -CAkey ca.key -set_serial 7 -days 30 -out host.pem 2>&1 | head -n 1
openssl verify -CAfile ca.pem host.pem && openssl x509 -in host.pem -noout -serial -issuer
openssl dgst -sha256 -sign ca.key -out signature data && openssl ec -in ca.key -pubout -out ca.pub 2>/dev/null && openssl dgst -sha256 -verify ca.pub -signature signature data
echo change >>data && openssl dgst -sha256 -verify ca.pub -signature signature data
openssl cms -encrypt -in signature -binary -outform DER -recip host.pem 2>/dev/null | wc -c | grep -c .
openssl cms -sign -signer ca.pem -inkey ca.key -in data -out signed.txt -text && openssl cms -verify -CAfile ca.pem -in signed.txt -purpose any -out /dev/null 2>&1
openssl prime 1000000007; openssl prime -hex FFFFFFFB; openssl rand 32 | wc -c; openssl passwd -6 -salt salt password; openssl kdf -keylen 16 -kdfopt digest:SHA256 -kdfopt key:k -kdfopt salt:s -kdfopt info:i HKDF
