#!/bin/sh
# The holders of the root keys sign a proposed root, one after the other, each at the machine with the key.
#
#   ceremony.sh REGISTRY MEDIUM KEY...
#
# REGISTRY has a proposal (`toolgate registry init` or `toolgate registry root propose` made it). MEDIUM is a
# directory on whatever is carried between the machines; each KEY is a key file, as a holder would have it on
# a machine of their own. Run it once with all keys to rehearse, or once on each machine with that key.
# Nothing but the proposal goes out, and nothing but signatures comes back.
set -eu

if [ "$#" -lt 3 ]; then
  sed -n '2,10s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
registry=$1
medium=$2
shift 2

mkdir -p "$medium"
cp "$registry/proposal/root.json" "$medium/root.json"
# Everybody reads this out before signing. It is the fingerprint that Toolgate shows, by another program.
echo "all present compare: sha256:$(sha256sum "$medium/root.json" | cut -d ' ' -f 1)"

for key in "$@"; do
  echo "signing with $key"
  toolgate registry root sign "$medium/root.json" --key "$key"
done

for signature in "$medium"/*.sig; do
  cp "$signature" "$registry/proposal/"
done
echo "the signatures are in $registry/proposal; publish with: toolgate registry root finish $registry"
