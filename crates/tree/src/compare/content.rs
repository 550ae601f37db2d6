//! Two files held against each other, byte for byte. Where both have a hole, nothing is read; where
//! one has, the other must be zeros.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use flatout_io::Error as IoError;
use flatout_io::transfer::read_full;

use crate::file_data;

/// Bytes of each file that are looked at at a time.
const CHUNK_BYTES: usize = 256 << 10;

/// Whether two files hold the same bytes.
///
/// Errors: one of them cannot be opened or read.
pub fn is_same(one: &Path, other: &Path) -> Result<bool, IoError> {
    let open = |path| {
        let opened = File::open(path).and_then(|file| Ok((file.metadata()?.len(), file)));
        opened.map_err(IoError::system("open", path))
    };
    let ((length_bytes, source), (copied_bytes, target)) = (open(one)?, open(other)?);
    let (source, target) = (source.as_fd(), target.as_fd());
    let pair = Pair { source, target, length_bytes, sparse: [false; 2] };
    let differs = Comparer::default().first_difference(pair, || true);
    let path = |whose| if whose == SOURCE { one } else { other };
    let differs = differs.map_err(|(whose, error)| IoError::system("read", path(whose))(error))?;
    Ok(copied_bytes == length_bytes && differs.is_none())
}

/// What is needed to compare many files; its memory is taken with the first.
#[derive(Debug, Default)]
pub(crate) struct Comparer {
    source: Vec<u8>,
    target: Vec<u8>,
}

/// Two open files of one length.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pair<'a> {
    pub(crate) source: BorrowedFd<'a>,
    pub(crate) target: BorrowedFd<'a>,
    pub(crate) length_bytes: u64,
    /// Which of the two may have holes, as the space that they take tells.
    pub(crate) sparse: [bool; 2],
}

/// Which of two files cannot be read, and why.
pub(crate) type Unread = (&'static str, io::Error);

pub(crate) const SOURCE: &str = "source";
pub(crate) const COPY: &str = "copy";

impl Comparer {
    /// Where the first difference lies. A file that ends early differs there. `go_on` is asked now
    /// and then; when it says no, the files count as equal so far.
    ///
    /// Errors: those of reading.
    pub(crate) fn first_difference(
        &mut self,
        pair: Pair<'_>,
        go_on: impl Fn() -> bool,
    ) -> Result<Option<u64>, Unread> {
        self.source.resize(CHUNK_BYTES, 0);
        self.target.resize(CHUNK_BYTES, 0);
        // Where the next data of each begins and ends.
        let mut extents =
            pair.sparse.map(|is_sparse| if is_sparse { (0, 0) } else { (0, pair.length_bytes) });
        let mut position = 0;
        while position < pair.length_bytes && go_on() {
            let sides = [(pair.source, SOURCE), (pair.target, COPY)];
            for (extent, (file, whose)) in extents.iter_mut().zip(sides) {
                if extent.1 <= position {
                    let next = file_data::next_extent(file, position, pair.length_bytes);
                    let next = next.map_err(|errno| (whose, errno.into()))?;
                    *extent = next.unwrap_or((pair.length_bytes, pair.length_bytes));
                }
            }
            let both = extents[0].0.min(extents[1].0);
            if both > position {
                position = both;
                continue;
            }
            // No piece is data in part: around 4 KiB in a hole a whole piece would be read.
            let is_hole = extents.map(|(start, _)| start > position);
            let ends = extents.map(|(start, end)| if start > position { start } else { end });
            let length = (ends[0].min(ends[1]) - position).min(CHUNK_BYTES as u64) as usize;
            let [source, target] = [&mut self.source[..length], &mut self.target[..length]];
            let ends = [
                fetch(pair.source, source, position, is_hole[0])
                    .map_err(|error| (SOURCE, error))?,
                fetch(pair.target, target, position, is_hole[1]).map_err(|error| (COPY, error))?,
            ];
            if source != target || ends != [length, length] {
                let equal = source.iter().zip(target.iter()).take_while(|(a, b)| a == b).count();
                return Ok(Some(position + equal.min(ends[0]).min(ends[1]) as u64));
            }
            position += length as u64;
        }
        Ok(None)
    }
}

/// Fills `buffer` from the file, or with zeros; tells how many bytes there were.
fn fetch(
    file: BorrowedFd<'_>,
    buffer: &mut [u8],
    position: u64,
    is_hole: bool,
) -> io::Result<usize> {
    if is_hole {
        buffer.fill(0);
        return Ok(buffer.len());
    }
    Ok(read_full(file, buffer, position)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use proptest::prelude::*;

    use super::*;

    const LENGTH_BYTES: u64 = 3 * CHUNK_BYTES as u64;

    /// A file of holes with so many bytes of a value at some places.
    fn file(pieces: &[(u64, usize, u8)]) -> (File, Vec<u8>) {
        let file = tempfile::tempfile().unwrap();
        file.set_len(LENGTH_BYTES).unwrap();
        let mut bytes = vec![0; LENGTH_BYTES as usize];
        for &(place, length, value) in pieces {
            let length = length.min((LENGTH_BYTES - place) as usize);
            file.write_all_at(&vec![value; length], place).unwrap();
            bytes[place as usize..][..length].fill(value);
        }
        (file, bytes)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn the_first_difference_is_found_wherever_holes_begin(
            common in pieces(), own in [pieces(), pieces()], is_alike in any::<bool>(),
            sparse in any::<[bool; 2]>(),
        ) {
            let sides = own.map(|own| if is_alike { common.clone() } else { [common.clone(), own].concat() });
            let [(source, left), (target, right)] = sides.map(|pieces| file(&pieces));
            let pair = Pair {
                source: source.as_fd(),
                target: target.as_fd(),
                length_bytes: LENGTH_BYTES,
                sparse,
            };
            // Unoptimised, bytes take long one by one.
            let mut pages = (0..left.len()).step_by(4096);
            let page = pages.find(|at| left[*at..][..4096] != right[*at..][..4096]);
            let differs = page.map(|page| (page..).find(|at| left[*at] != right[*at]).unwrap() as u64);
            let found = Comparer::default().first_difference(pair, || true).unwrap();
            prop_assert_eq!(found, differs);
        }
    }

    #[test]
    fn it_is_told_which_of_the_two_cannot_be_read() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("file");
        std::fs::write(&path, "bytes").unwrap();
        let read = File::open(&path).unwrap();
        let written = File::options().append(true).open(&path).unwrap();
        let compare = |source: &File, target: &File| {
            let (source, target) = (source.as_fd(), target.as_fd());
            let pair = Pair { source, target, length_bytes: 5, sparse: [false; 2] };
            Comparer::default().first_difference(pair, || true)
        };
        assert!(matches!(compare(&written, &read), Err((SOURCE, _))));
        assert!(matches!(compare(&read, &written), Err((COPY, _))));
    }

    fn pieces() -> impl Strategy<Value = Vec<(u64, usize, u8)>> {
        prop::collection::vec((0..LENGTH_BYTES, 1..40_000_usize, 0..3_u8), 0..6)
    }
}
