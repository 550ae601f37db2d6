//! `flatout compute`: what `versus` races against OpenBLAS and STREAM.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::bin::Folder;
use crate::skip::skip;

#[test]
fn products_factors_and_streams_are_done_and_checked() {
    let folder = Folder::new();
    for (what, order, threads) in [
        ("product", "77", "1"),
        ("product", "300", "3"),
        ("factor", "130", "2"),
        ("triad", "100000", "2"),
        ("copy", "100000", "1"),
    ] {
        let words = ["compute", what, "--order", order, "--threads", threads, "--duration", "1ms"];
        let ran = folder.flatout(words).run();
        let found: Value = serde_json::from_str(&ran.exits(0).stdout).unwrap();
        assert!(found["figure"].as_f64() > Some(0.0), "{what}: {found}");
        assert!(found["by"].as_str().unwrap().starts_with("flatout"), "{what}: {found}");
        let is_matrix = ["product", "factor"].contains(&what);
        assert_eq!(found["normalised_residual"].as_f64().is_some(), is_matrix, "{what}: {found}");
    }
}

#[test]
fn more_numbers_than_there_is_memory_are_refused_before_any_is_taken() {
    let folder = Folder::new();
    for what in ["product", "factor", "triad"] {
        let ran = folder.flatout(["compute", what, "--order", "99999999999", "-j", "3"]).run();
        ran.complains(1, &["--order 99999999999", "are free"]);
    }
}

#[test]
fn a_library_that_is_none_is_refused_with_the_reason() {
    let folder = Folder::new();
    let words = ["compute", "product", "--order", "10", "--library"];
    let ran = folder.flatout(words.into_iter().chain(["libc.so.6"])).run();
    ran.complains(1, &["libc.so.6", "it has no cblas_dgemm"]);
    let ran = folder.flatout(words.into_iter().chain(["./none.so"])).run();
    ran.complains(1, &["none.so", "No such file"]);
}

#[test]
fn a_library_that_has_not_the_threads_is_refused() {
    let folder = Folder::new();
    let text = "void cblas_dgemm() {} void dgetrf_() {} void openblas_set_num_threads(int n) {}\n\
                int openblas_get_num_threads() { return 1; }\n\
                char *openblas_get_config() { return \"for one thread\"; }\n\
                char *openblas_get_corename() { return \"Haswell\"; }\n";
    fs::write(folder.join("one.c"), text).unwrap();
    let mut compiler = Command::new("cc");
    compiler.current_dir(folder.path()).args(["-shared", "-fPIC", "-w", "-o", "one.so", "one.c"]);
    if !compiler.status().is_ok_and(|status| status.success()) {
        skip!("there is no C compiler");
    }
    let words = ["compute", "product", "--order", "10", "--threads", "2", "--library", "./one.so"];
    folder.flatout(words).run().complains(1, &["one.so", "of 2 threads it has 1"]);
}
