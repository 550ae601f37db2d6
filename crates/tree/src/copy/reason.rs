//! Reasons of the rules of cp(1), for whoever says them in the words of cp.

/// To copy to itself.
pub const SAME_FILE: &str = "it is the same file as the source";
/// To overwrite a directory.
pub const DIRECTORY_OVER: &str = "it is a directory, the source is none";
/// To overwrite something else by a directory.
pub const OTHER_OVER: &str = "it is no directory, the source is one";
/// To overwrite, or write through, what an earlier operand has brought.
pub const JUST_MADE: &str = "it was just created by this very copy";
/// To overwrite, where nothing may be.
pub const IS_THERE: &str = "it is there already";
/// To write through a symlink.
pub const LEADS_NOWHERE: &str = "it is a dangling symlink";
/// To back up what the source is a backup of.
pub const IS_BACKUP: &str = "its backup would take the place of the source";
/// To make a symlink with a relative text.
pub const ELSEWHERE: &str = "a relative symlink can be made in the current directory only";
/// To copy a directory into its copy.
pub const LOOPS: &str = "it is a symlink to a directory in which it lies";
/// An operand to itself.
pub const SAME: &str = "they are the same file";
/// A directory over itself.
pub const SAME_DIRECTORY: &str = "it is the same directory as the source";
/// A target in which a source lies, and of which something may be deleted.
pub const HOLDS_SOURCE: &str = "a source lies in it";
/// A directory into itself.
pub const INSIDE: &str = "the target lies inside the source";
/// A directory over something else.
pub const OVER_OTHER: &str = "the source is a directory, the target is there and is none";
