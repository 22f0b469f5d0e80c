//! The page.

fn main() {
    capo_web::start();
}
