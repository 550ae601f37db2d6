//! What is wrong with a command line, as a table: what is not to be, and what is said then.

/// What is said of the first condition that holds; those below it are not looked at.
macro_rules! first_wrong {
    ($($is_so:expr => $text:expr;)+) => {
        $(if $is_so { Some(String::from($text)) } else)+ { None }
    };
}

pub(super) use first_wrong;
