//! `berth ui`: the page of the fleet from a server of its own, which follows the fleet.
//!
//! - [`pages`]: the page of now and the one before. [`server`]: answers browsers.

mod pages;
mod server;

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use super::site::{KnownHistory, PageArgs, stamp};
use crate::flags::state::Located;
use crate::output::ui::Ui;
use crate::process::exit::{CommandError, Outcome};
use berth_base::backoff::pace::paced;
use berth_http::listener::address;
use berth_site::Site;
use pages::{Page, Pages};
use server::Server;

/// Show the fleet as a page that follows it
///
/// What `berth site` writes to a folder, from a server on this machine: a browser shows each publication and each report
/// as it arrives. It only reads. On another address than one of this machine, the page's address contains a token, and
/// only who has it sees the page; put TLS in front of it. Ends with Ctrl-C.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  berth ui\n  berth ui --listen 8080 --repo /srv/fleet.git\n  berth ui --rendered https://git.example.com/fleet.git"
)]
pub(crate) struct UiArgs {
    /// Address or port to serve the page on; a port alone is one of this machine only
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:7373", value_parser = address)]
    listen: SocketAddr,
    #[command(flatten)]
    page: PageArgs,
}

/// The interval of reading the refs.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
/// The interval of reading the refs of a remote.
const BETWEEN_FETCHES: Duration = Duration::from_secs(5);

pub(crate) fn cmd_ui(args: &UiArgs, ui: &Ui) -> Outcome {
    let mut follower = Follower::begin(&args.page, ui)?;
    let pages = Arc::new(Pages::of(Page::of(&follower.site)));
    let server = Server::start(args.listen, pages.clone()).map_err(|error| {
        let fault = CommandError::io(format!("listening on {}", args.listen), &error);
        match error.kind() {
            ErrorKind::AddrInUse => {
                fault.hint("another program listens there; `--listen 0` takes a free port")
            }
            _ => fault,
        }
    })?;
    ui.out(&format!("{}\n", server.address));
    ui.status("the page follows the fleet until Ctrl-C");
    let mut failure = None;
    loop {
        ui.write_failure().map_or(Ok(()), Err)?;
        std::thread::sleep(paced(follower.pause()));
        let message = match follower.look(ui) {
            Ok(is_newer) => {
                if is_newer {
                    pages.renew(Page::of(&follower.site));
                }
                None
            }
            Err(error) => Some(error.message),
        };
        // The page of before stays, and the same fault is shown once.
        if let Some(message) = message.as_ref().filter(|_| failure != message) {
            ui.status(&format!("the page stays as it is: {message}"));
        }
        failure = message;
    }
}

/// The newest page, and the record that it is made from.
struct Follower<'a> {
    args: &'a PageArgs,
    located: Located,
    /// The digest of what the page is made from.
    inputs: String,
    site: Site,
    known: KnownHistory,
}

impl<'a> Follower<'a> {
    fn begin(args: &'a PageArgs, ui: &Ui) -> Result<Follower<'a>, CommandError> {
        let located = Located::open(&args.repo, &args.state, ui)?;
        let inputs = stamp::digest(&args.options(), located.opened())?;
        let mut known = KnownHistory::default();
        let site = args.site(&located, inputs.clone(), &mut known, ui)?;
        Ok(Follower { args, located, inputs, site, known })
    }

    fn pause(&self) -> Duration {
        if self.args.state.address().is_some() { BETWEEN_FETCHES } else { BETWEEN_LOOKS }
    }

    /// Makes the page again if refs moved or the time is up. Returns true if it is another one.
    fn look(&mut self, ui: &Ui) -> Result<bool, CommandError> {
        self.located.look_again(&self.args.state)?;
        let inputs = stamp::digest(&self.args.options(), self.located.opened())?;
        if self.site.head.stamp.holds(&inputs, ui.now().as_second()) && inputs == self.inputs {
            return Ok(false);
        }
        let site = self.args.site(&self.located, inputs.clone(), &mut self.known, ui)?;
        (self.inputs, self.site) = (inputs, site);
        Ok(true)
    }
}
