//! Starts the page, or the worker when this module was loaded by one.

fn main() {
    capo_web::start();
}
