//! What the command line names, as files to be read.

use std::path::PathBuf;

use flatout_io::digest::Algorithm;
use flatout_tree::item::{Item, Place, Wanted};
use flatout_tree::walk::{Walk, Yielded, place_of};

use crate::arguments::sum::Sum;
use crate::output::stream::Inode;

/// The files in the order in which they are named, those of a tree in its own. The files with
/// these inode numbers are left out of trees.
pub fn items(arguments: &Sum, left_out: Vec<Inode>) -> impl Iterator<Item = Yielded> + use<> {
    let wanted = Wanted::Digest(arguments.digest.unwrap_or(Algorithm::Blake3));
    let is_recursive = arguments.recursive;
    arguments.operands().into_iter().flat_map(move |path| {
        let is_tree = is_recursive && path.as_os_str() != "-";
        let one = (!is_tree).then(|| Ok(item(path.clone(), wanted.clone())));
        let tree = is_tree.then(|| {
            let walk = Walk::new(path, wanted.clone());
            left_out.iter().fold(walk, |walk, inode| walk.without(inode.0, inode.1))
        });
        one.into_iter().chain(tree.into_iter().flatten())
    })
}

/// A file by the name that somebody gave it.
pub fn item(path: PathBuf, wanted: Wanted) -> Item {
    let place = if path.as_os_str() == "-" { Place::StandardInput } else { place_of(&path) };
    Item { place, shown: path.into_os_string(), wanted }
}
