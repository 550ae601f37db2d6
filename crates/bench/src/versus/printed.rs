//! What a program printed: text, or a record of flatout's own.

use flatout_measure::record::Record;
use flatout_measure::{Outcome, Status};
use flatout_sys::process::Account;

use crate::Error;

/// A run that is not what it should be.
pub(super) fn wrong(text: impl Into<String>) -> Error {
    Error::Usage(text.into())
}

/// The output as text.
///
/// Errors: it is none.
pub(super) fn output<'a>(name: &str, account: &'a Account) -> Result<&'a str, Error> {
    std::str::from_utf8(&account.stdout)
        .map_err(|_| wrong(format!("{name} printed what is no text")))
}

/// The row of flatout's record that was asked for, and its figure.
///
/// Errors: it is not there, for example because the place cannot do it and another one was
/// measured; it failed.
pub(super) fn row(
    account: &Account,
    is_it: impl Fn(&Outcome) -> bool,
) -> Result<(Outcome, f64), Error> {
    const NAME: &str = "flatout";
    let record = Record::parse(output(NAME, account)?);
    let mut rows =
        record.map_err(|error| wrong(format!("{NAME} printed no record: {error}")))?.results;
    let Some(at) = rows.iter().position(is_it) else {
        let first = rows.iter().flat_map(|row| &row.warnings).next();
        let why = first.map_or_else(String::new, |warning| format!(": {}", warning.text));
        return Err(wrong(format!("{NAME} has not measured the row that was asked for{why}")));
    };
    let row = rows.swap_remove(at);
    let is_usable = matches!(row.status, Status::Ok | Status::Unstable | Status::Degraded);
    match row.median.filter(|_| is_usable) {
        Some(figure) => Ok((row, figure)),
        None => {
            let why = row.warnings.first();
            let why = why.map_or("no reason given", |warning| warning.text.as_str());
            Err(wrong(format!("{NAME} has no figure: {why}")))
        }
    }
}
