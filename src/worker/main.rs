//! A run's worker.

fn main() {
    capo_web::worker::start();
}
