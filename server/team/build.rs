//! Takes what the viewer of the API's description needs out of Swagger UI's archive, which its crate brings along.

use std::io::{self, Cursor};
use std::path::Path;
use std::{env, fs};

use utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED;
use zip::ZipArchive;

/// The viewer with all that it is made of, and its style.
const FILES: [&str; 2] = ["swagger-ui-bundle.js", "swagger-ui.css"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let out = env::var("OUT_DIR").expect("cargo names a folder");
    let mut archive = ZipArchive::new(Cursor::new(SWAGGER_UI_VENDORED)).expect("the archive is whole");
    let mut found = 0;
    for index in 0..archive.len() {
        let mut file = archive.by_index(index).expect("the archive is whole");
        let path = file.enclosed_name().expect("the archive has no strange paths");
        for name in FILES {
            if path.ends_with(Path::new("dist").join(name)) {
                let mut into =
                    fs::File::create(Path::new(&out).join(name)).expect("cargo's folder can be written");
                io::copy(&mut file, &mut into).expect("cargo's folder can be written");
                found += 1;
            }
        }
    }
    assert_eq!(found, FILES.len(), "Swagger UI has other files than it had");
}
