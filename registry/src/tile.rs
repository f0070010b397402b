//! Tiles: the hashes of the log's lines as static files (C2SP tlog-tiles), 256 to a file.
//!
//! A full tile never changes; a partial one is named by its width, so that it never changes either.

use crate::merkle::{self, Hash};

/// Hashes in a full tile.
pub(crate) const WIDTH: u64 = 256;

/// The path of a tile: level, number in groups of three digits, and the width of a partial one.
pub(crate) fn path(level: u8, number: u64, width: u64) -> String {
    let mut groups = vec![format!("{:03}", number % 1000)];
    let mut rest = number / 1000;
    while rest > 0 {
        groups.push(format!("x{:03}", rest % 1000));
        rest /= 1000;
    }
    groups.reverse();
    let path = format!("tile/{level}/{}", groups.join("/"));
    if width == WIDTH { path } else { format!("{path}.p/{width}") }
}

/// The tiles of level 0 that hold the leaves `from..to`: number and width of each.
pub(crate) fn covering(from: u64, to: u64) -> impl Iterator<Item = (u64, u64)> {
    (from / WIDTH..to.div_ceil(WIDTH)).map(move |number| (number, (to - number * WIDTH).min(WIDTH)))
}

/// The hashes in a tile's bytes, if there are exactly so many.
pub(crate) fn read(bytes: &[u8], width: u64) -> Option<Vec<Hash>> {
    let (hashes, rest) = bytes.as_chunks::<32>();
    (rest.is_empty() && hashes.len() as u64 == width).then(|| hashes.to_vec())
}

/// Every tile of all levels that holds one of the leaves from `from` on: path and bytes.
pub(crate) fn changed(leaves: &[Hash], from: usize) -> Vec<(String, Vec<u8>)> {
    let mut tiles = Vec::new();
    let mut hashes = leaves.to_vec();
    let (mut level, mut from) = (0, from);
    let width = usize::try_from(WIDTH).unwrap_or(256);
    while !hashes.is_empty() {
        let first = from / width;
        for (number, tile) in hashes.chunks(width).enumerate().skip(first) {
            tiles.push((path(level, number as u64, tile.len() as u64), tile.concat()));
        }
        // The next level holds the roots of full tiles only.
        hashes = hashes.chunks_exact(width).map(merkle::root).collect();
        from = first;
        level += 1;
    }
    tiles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_those_of_tlog_tiles() {
        assert_eq!(path(0, 0, 256), "tile/0/000");
        assert_eq!(path(0, 5, 7), "tile/0/005.p/7");
        assert_eq!(path(0, 1_234_067, 256), "tile/0/x001/x234/067");
    }

    #[test]
    fn a_range_is_covered_by_the_tiles_it_touches() {
        assert_eq!(covering(0, 0).count(), 0);
        assert_eq!(covering(0, 1).collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!(covering(255, 257).collect::<Vec<_>>(), [(0, 256), (1, 1)]);
        assert_eq!(covering(256, 512).collect::<Vec<_>>(), [(1, 256)]);
    }

    #[test]
    fn changed_tiles_hold_the_leaves_and_the_roots_of_full_tiles() {
        let leaves: Vec<Hash> = (0_u32..600).map(|number| merkle::leaf(&number.to_be_bytes())).collect();
        let tiles = changed(&leaves, 520);
        let paths: Vec<&str> = tiles.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(paths, ["tile/0/002.p/88", "tile/1/000.p/2"]);
        assert_eq!(read(&tiles[0].1, 88).unwrap(), leaves[512..]);
        assert_eq!(read(&tiles[1].1, 2).unwrap()[0], merkle::root(&leaves[..256]));
        assert_eq!(read(&tiles[0].1, 87), None);
    }
}
