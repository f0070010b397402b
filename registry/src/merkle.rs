//! The Merkle tree of RFC 6962 over the lines of an index.
//!
//! Leaf: sha256(0x00 || line without its line feed). Node: sha256(0x01 || left || right). The tree of
//! no leaves is sha256 of nothing. Domains are separated, so a node is never taken for a line.

use sha2::{Digest as _, Sha256};

/// A hash of the tree.
pub(crate) type Hash = [u8; 32];

/// The most lines a log may have: a client keeps 32 bytes for each.
pub(crate) const MAX_LEAVES: u64 = 1 << 20;

/// The hash of a line.
pub(crate) fn leaf(line: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(line).finalize().into()
}

/// The hash of two neighbours.
pub(crate) fn node(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// The root of a tree by the hashes of its leaves (RFC 6962, section 2.1).
pub(crate) fn root(leaves: &[Hash]) -> Hash {
    // A stack of perfect subtrees, largest first, as a binary counter: equal neighbours are merged.
    let mut stack: Vec<(u32, Hash)> = Vec::new();
    for leaf in leaves {
        let mut top = (0, *leaf);
        while let Some((_, left)) = stack.pop_if(|(level, _)| *level == top.0) {
            top = (top.0 + 1, node(&left, &top.1));
        }
        stack.push(top);
    }
    let folded = stack.into_iter().map(|(_, hash)| hash).rev().reduce(|right, left| node(&left, &right));
    folded.unwrap_or_else(|| Sha256::digest([]).into())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The definition of RFC 6962, section 2.1, as it is written there.
    fn by_definition(leaves: &[Hash]) -> Hash {
        match leaves.len() {
            0 => Sha256::digest([]).into(),
            1 => leaves[0],
            count => {
                let mut split = 1;
                while split * 2 < count {
                    split *= 2;
                }
                node(&by_definition(&leaves[..split]), &by_definition(&leaves[split..]))
            }
        }
    }

    #[test]
    fn the_first_trees_of_the_published_test_data_come_out() {
        // The inputs and roots that implementations of RFC 6962 share.
        let inputs: [&[u8]; 8] = [
            b"",
            b"\x00",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let leaves: Vec<Hash> = inputs.iter().map(|input| leaf(input)).collect();
        let roots = [
            (0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
            (1, "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d"),
            (2, "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125"),
            (3, "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77"),
            (8, "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328"),
        ];
        for (count, expected) in roots {
            assert_eq!(hex::encode(root(&leaves[..count])), expected, "{count} leaves");
        }
    }

    proptest! {
        #[test]
        fn the_root_is_the_one_of_the_definition(count in 0_u32..600) {
            let leaves: Vec<Hash> = (0..count).map(|number| leaf(&number.to_be_bytes())).collect();
            prop_assert_eq!(root(&leaves), by_definition(&leaves));
        }
    }
}
