//! A BLAS and LAPACK library of the machine, loaded at run time: OpenBLAS, or what takes its place.
//!
//! It is somebody else's code in this process, so only a program that does nothing else should load
//! one. Matrices are column-major, as in [`crate::dgemm`].

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::dgemm::{Block, BlockMut};

/// Values of `CBLAS_ORDER` and `CBLAS_TRANSPOSE`.
const COLUMN_MAJOR: c_int = 102;
const AS_IT_IS: c_int = 111;

type Product = unsafe extern "C" fn(
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    c_int,
    f64,
    *const f64,
    c_int,
    *const f64,
    c_int,
    f64,
    *mut f64,
    c_int,
);
type Factor = unsafe extern "C" fn(
    *const c_int,
    *const c_int,
    *mut f64,
    *const c_int,
    *mut c_int,
    *mut c_int,
);
type Threads = unsafe extern "C" fn(c_int);
type Count = unsafe extern "C" fn() -> c_int;
type Text = unsafe extern "C" fn() -> *const c_char;

/// A library with `cblas_dgemm` and `dgetrf_`, with integers of 32 bits.
pub struct Library {
    product: Product,
    factor: Factor,
    threads: Threads,
    count: Count,
    config: Text,
    core: Text,
}

/// The address of a function, by its name.
fn symbol(library: *mut c_void, name: &CStr) -> Result<*mut c_void, String> {
    // SAFETY: `library` is an open one, and the name ends with a zero.
    let found = unsafe { libc::dlsym(library, name.as_ptr()) };
    if found.is_null() { Err(format!("it has no {}", name.to_string_lossy())) } else { Ok(found) }
}

/// What the loader last complained about.
fn complaint() -> String {
    // SAFETY: dlerror(3) returns a text that stands until the next call of this thread, or null.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "the loader does not say why".to_owned();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// What one of its functions says.
fn text(function: Text) -> String {
    // SAFETY: each returns a text that nobody frees.
    let text = unsafe { CStr::from_ptr(function()) };
    text.to_string_lossy().trim().to_owned()
}

/// An order or a stride as the library takes it.
fn integer(value: usize) -> c_int {
    c_int::try_from(value).expect("matrices of more than 2^31 rows do not fit into memory")
}

impl Library {
    /// Loads `path`, or what dlopen(3) finds by that name. It stays loaded.
    ///
    /// Errors: it cannot be loaded, or is not OpenBLAS; the text says what is missing.
    pub fn load(path: &Path) -> Result<Self, String> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|error| error.to_string())?;
        // SAFETY: the name ends with a zero. What the library's constructors do is its own affair:
        // whoever names it trusts it, as with a program that is started.
        let library = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if library.is_null() {
            return Err(complaint());
        }
        let find = |name| symbol(library, name);
        // SAFETY: the functions of these names have these types in every release of OpenBLAS with
        // integers of 32 bits; others call theirs by names with a suffix.
        unsafe {
            Ok(Self {
                product: std::mem::transmute::<*mut c_void, Product>(find(c"cblas_dgemm")?),
                factor: std::mem::transmute::<*mut c_void, Factor>(find(c"dgetrf_")?),
                threads: std::mem::transmute::<*mut c_void, Threads>(find(
                    c"openblas_set_num_threads",
                )?),
                count: std::mem::transmute::<*mut c_void, Count>(find(
                    c"openblas_get_num_threads",
                )?),
                config: std::mem::transmute::<*mut c_void, Text>(find(c"openblas_get_config")?),
                core: std::mem::transmute::<*mut c_void, Text>(find(c"openblas_get_corename")?),
            })
        }
    }

    /// What it is, and which kernels it runs, in its own words.
    pub fn description(&self) -> String {
        format!("{}, kernels {}", text(self.config), self.core())
    }

    /// For which CPU its kernels are, in its own word.
    pub fn core(&self) -> String {
        text(self.core)
    }

    /// Has it work in so many threads, this one included.
    ///
    /// Errors: it has others, since it was built for one, or for fewer.
    pub fn set_threads(&self, threads: u32) -> Result<(), String> {
        // SAFETY: any number is allowed; the other function takes nothing and returns a number.
        let count = unsafe {
            (self.threads)(threads.cast_signed());
            (self.count)()
        };
        let is_so = count == threads.cast_signed();
        is_so.then_some(()).ok_or(format!("of {threads} threads it has {count}"))
    }

    /// `target` = `left` × `right`.
    ///
    /// Panics: where the shapes do not fit.
    pub fn multiply(&self, mut target: BlockMut<'_>, left: Block<'_>, right: Block<'_>) {
        let (rows, depth, columns) = (left.rows(), left.columns(), right.columns());
        assert!(right.rows() == depth, "the factors fit each other");
        assert!(target.rows() == rows && target.columns() == columns, "the target fits them");
        // SAFETY: blocks lie within their matrices; those of the factors are only read, and the
        // target belongs to this call.
        unsafe {
            (self.product)(
                COLUMN_MAJOR,
                AS_IT_IS,
                AS_IT_IS,
                integer(rows),
                integer(columns),
                integer(depth),
                1.0,
                left.start(),
                integer(left.stride()),
                right.start(),
                integer(right.stride()),
                0.0,
                target.start(),
                integer(target.stride()),
            );
        }
    }

    /// Factors a matrix in place into L and U; for each row the one that it was exchanged with, in
    /// order. `None` where it is singular.
    pub fn factor(&self, mut matrix: BlockMut<'_>) -> Option<Vec<usize>> {
        let (rows, columns) = (integer(matrix.rows()), integer(matrix.columns()));
        let stride = integer(matrix.stride());
        let mut pivots = vec![0; matrix.rows().min(matrix.columns())];
        let mut outcome = 0;
        // SAFETY: the matrix lies within its block, which belongs to this call; there is room for
        // a pivot of each column.
        unsafe {
            (self.factor)(
                &raw const rows,
                &raw const columns,
                matrix.start(),
                &raw const stride,
                pivots.as_mut_ptr(),
                &raw mut outcome,
            );
        }
        // LAPACK counts rows from 1 on.
        (outcome == 0).then(|| pivots.iter().map(|&row: &c_int| row as usize - 1).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_such_library_is_refused_with_the_reason() {
        let refusal = |path: &str| Library::load(Path::new(path)).err().expect("it is none");
        assert!(refusal("/nowhere/libnone.so").contains("libnone.so"));
        assert_eq!(refusal("libc.so.6"), "it has no cblas_dgemm");
    }
}
