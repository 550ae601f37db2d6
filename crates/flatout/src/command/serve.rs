//! `flatout serve`: listens, says where and with which token, and tells of sessions as they come
//! and go. What it measures, the client records.

use std::process::ExitCode;

use flatout_bench::network::address::resolve;
use flatout_bench::network::channel::ChannelError;
use flatout_bench::network::server::{Clients, Lifetime, Notice, Server};
use flatout_bench::network::token::{Key, new_token};
use flatout_io::cause_text;
use flatout_measure::units::counted;
use flatout_sys::cancel::CancelToken;

use crate::arguments::serve::Serve;
use crate::conclusion::{INTERRUPTED, Refused};
use crate::output::{self, cannot};

/// Serves until the lifetime is over.
pub fn run(serve: &Serve, cancel: CancelToken) -> ExitCode {
    match try_run(serve, cancel) {
        Ok(()) if cancel.is_cancelled() => output::exit(INTERRUPTED),
        Ok(()) => ExitCode::SUCCESS,
        Err(Refused { code, text }) => output::give_up(code, &text),
    }
}

fn try_run(serve: &Serve, cancel: CancelToken) -> Result<(), Refused> {
    let port = serve.port().map_err(Refused::wrong_use)?;
    let addresses = resolve(&serve.bind, port, None)?;
    let is_loopback = addresses.iter().all(|address| address.ip().is_loopback());
    let (key, token) = match (&serve.token_file, is_loopback) {
        (Some(path), _) => (Key::from_file(path)?, None),
        (None, true) => (Key::open(), None),
        (None, false) => {
            let token = new_token().map_err(cannot("make a token"))?;
            (Key::of(&token), Some(token))
        }
    };
    let at = addresses.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
    let server = Server::bind(&addresses, key).map_err(cannot(format_args!("listen at {at}")))?;
    let address =
        server.address().map_err(|error| format!("getsockname: {}", cause_text(&error)))?;
    // Whoever is not told the address has no use of it.
    output::to_standard_output(format!("listening at {address}\n").as_bytes())?;
    if let Some(token) = token {
        output::say(&format!("token {token}"));
    }
    let lifetime = if serve.once { Lifetime::Once } else { Lifetime::Forever };
    let clients = match (serve.together, lifetime) {
        (Some(clients), _) => Clients::Together(clients),
        (None, Lifetime::Once) => Clients::UpTo(1),
        (None, Lifetime::Forever) => Clients::UpTo(serve.clients),
    };
    let mut last = Ok(());
    let served = server.serve((lifetime, clients), cancel, &mut |notice| match notice {
        Notice::Begins(peer, 0) => output::say(&format!("session of {peer} begins")),
        Notice::Begins(peer, others) => {
            output::say(&format!("session of {peer} begins, beside {}", counted(others, "other")));
        }
        Notice::Ended(peer, Ok(tests)) => {
            output::say(&format!("session of {peer} ended after {}", counted(tests, "test")));
        }
        Notice::Ended(_, Err(ChannelError::Cancelled)) => {}
        Notice::Ended(peer, Err(error)) => {
            let text = format!("session of {peer} broke off: {error}");
            if lifetime == Lifetime::Once {
                last = Err(text);
            } else {
                output::complain(&text);
            }
        }
    });
    served.map_err(cannot("serve"))?;
    Ok(last?)
}
