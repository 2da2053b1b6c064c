//! nicbench-connections: TCP connections by the clock, as a client and as a server (protocol/connections.md).

use std::process::ExitCode;

/// The exit status: 0, 2 for arguments that cannot be, 3 where it could not begin.
///
/// What failed of the connections is in the result and is no error of the program: it was asked to find out.
///
/// Errors are one line on stderr, and one with what to do next.
fn main() -> ExitCode {
    let open_files = nicbench_connections::raise_open_files();
    nicbench_connections::cli::run(open_files)
}
