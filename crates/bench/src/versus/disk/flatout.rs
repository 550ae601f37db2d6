//! What `flatout bench disk --format json` says about one trial.

use flatout_measure::{Unit, warning};
use flatout_sys::process::Account;
use serde_json::{Map, Value};

use super::seen::Seen;
use crate::Error;
use crate::versus::printed;
use crate::versus::race::Checked;

const NAME: &str = "flatout";

/// Warnings about one trial that say nothing here: a race takes many, watches who disturbs them, and
/// clears the cache before each.
const OF_ONE_TRIAL: [&str; 4] =
    [warning::FEW_TRIALS, warning::UNSTABLE, warning::DISTURBED, warning::FITS_IN_CACHE];

/// The row with this id and these parameters, if its figure can be used.
///
/// Errors: it is not there, or failed; it cannot be true.
pub(super) fn check(
    account: &Account,
    id: &str,
    parameters: &Map<String, Value>,
    unit: Unit,
) -> Result<Checked, Error> {
    let (row, figure) = printed::row(account, |row| row.id == id && row.parameters == *parameters)?;
    let fact = |key: &str| row.fact_number(key);
    let block_bytes = parameters.get("block_bytes").and_then(Value::as_u64).unwrap_or(0);
    let is_counted = unit == Unit::OperationsPerSecond;
    let bytes = fact("bytes").unwrap_or(0.0);
    let seen = Seen {
        bytes_per_s: if is_counted { figure * block_bytes as f64 } else { figure },
        operations_per_s: is_counted.then_some(figure),
        bytes: bytes as u64,
        // The row says what it did; only its last block may be shorter.
        block_bytes: block_bytes as f64,
        elapsed_s: fact("elapsed_ns").map(|ns| ns / 1e9),
    };
    let mut checked = seen.checked(NAME, block_bytes, unit)?;
    let warnings = row.warnings.iter();
    let lasting = warnings.filter(|warning| !OF_ONE_TRIAL.contains(&warning.code.as_str()));
    checked.warnings.extend(lasting.cloned());
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parameters() -> Map<String, Value> {
        json!({"block_bytes": 4096, "depth": 64}).as_object().cloned().unwrap()
    }

    fn account(change: impl FnOnce(&mut Value)) -> Account {
        let mut record = json!({
            "schema": "flatout/1",
            "start": {"tool": "flatout", "argv": [], "seed": 1, "time": "", "environment": {}},
            "results": [{
                "id": "disk/random-read", "parameters": parameters(), "unit": "operations/s",
                "better": "higher", "median": 1000.0, "ci95": null, "n": 1, "samples": [1000.0],
                "status": "unstable", "ceiling": null,
                "audit": {"bytes": 4096000, "elapsed_ns": 1_000_000_000_u64},
                "warnings": [{"code": "few_trials", "text": "1 trial"},
                    {"code": "loop_cached", "text": "a loop device"}],
            }],
            "end": {"elapsed_s": 1.0, "exit_code": 0, "errors": []},
        });
        change(&mut record["results"][0]);
        Account { stdout: record.to_string().into_bytes(), ..Account::default() }
    }

    fn of(account: &Account) -> Result<Checked, Error> {
        check(account, "disk/random-read", &parameters(), Unit::OperationsPerSecond)
    }

    #[test]
    fn the_row_asked_for_has_the_figure_and_its_lasting_warnings() {
        let checked = of(&account(|_| {})).unwrap();
        assert_eq!(checked.figure, Some(1000.0));
        let codes: Vec<&str> =
            checked.warnings.iter().map(|warning| warning.code.as_str()).collect();
        assert_eq!(codes, ["loop_cached"]);
    }

    #[test]
    fn another_row_or_none_is_an_error() {
        let another = of(&account(|row| row["parameters"]["depth"] = json!(1)));
        assert!(another.unwrap_err().to_string().contains("has not measured the row"));
        let none = of(&account(|row| row["median"] = Value::Null));
        assert!(none.unwrap_err().to_string().contains("has no figure: 1 trial"));
        let failed = of(&account(|row| row["status"] = json!("failed")));
        assert!(failed.is_err());
        let idle = of(&account(|row| row["audit"]["bytes"] = json!(0)));
        assert!(idle.unwrap_err().to_string().contains("moved no bytes"));
        let nonsense = Account { stdout: b"all is well".to_vec(), ..Account::default() };
        assert!(of(&nonsense).unwrap_err().to_string().contains("printed no record"));
    }
}
