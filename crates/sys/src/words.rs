//! Enums whose variants have a word each: both are said in one place.

/// Defines enums with a function that gives the word of each variant. `ALL` adds a list of all
/// variants in their order, `text` that it is written and read as its word besides.
///
/// # Example
/// ```
/// flatout_sys::words! {
///     /// What the page cache holds.
///     enum State: word, ALL, text {
///         Hot = "hot",
///         Cold = "cold",
///     }
/// }
/// assert_eq!(State::ALL.map(State::word), ["hot", "cold"]);
/// assert_eq!("cold".parse(), Ok(State::Cold));
/// assert_eq!("warm".parse::<State>().unwrap_err(), "\"warm\" is none of hot, cold");
/// ```
#[macro_export]
macro_rules! words {
    ($(#[$meta:meta])* $vis:vis enum $name:ident: $word:ident $(, $more:ident)* { $($variants:tt)+ }
        $($others:tt)+) => {
        $crate::words! { $(#[$meta])* $vis enum $name: $word $(, $more)* { $($variants)+ } }
        $crate::words! { $($others)+ }
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident: $word:ident, ALL, text { $($variants:tt)+ }) => {
        $crate::words! { $(#[$meta])* $vis enum $name: $word, ALL { $($variants)+ } }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, formatter: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                formatter.pad(self.$word())
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = String;

            fn from_str(text: &str) -> ::std::result::Result<Self, String> {
                let found = Self::ALL.into_iter().find(|known| known.$word() == text);
                found.ok_or_else(|| {
                    let known = Self::ALL.map(Self::$word).join(", ");
                    format!("{text:?} is none of {known}")
                })
            }
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident: $word:ident, ALL {
        $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)?
    }) => {
        $crate::words! {
            $(#[$meta])* $vis enum $name: $word { $($(#[$variant_meta])* $variant = $text),+ }
        }

        impl $name {
            /// All, in order.
            $vis const ALL: [Self; [$($text),+].len()] = [$(Self::$variant),+];
        }
    };
    ($(#[$meta:meta])* $vis:vis enum $name:ident: $word:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)?
    }) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        $(#[$meta])*
        $vis enum $name { $($(#[$variant_meta])* $variant),+ }

        impl $name {
            /// The word for it.
            $vis const fn $word(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }
        }
    };
}
