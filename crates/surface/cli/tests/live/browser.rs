//! A browser through the proxy in a hop under FWP.

use std::fs;
use std::path::Path;

use super::fetch::{lines, run, served, through_proxy};
use super::player::byte;
use super::support::machine;

const IMAGES: u32 = 20;
/// Side length in pixels. The bytes of a row are a multiple of four, so there is no padding.
const SIDE: u32 = 200;

/// An uncompressed picture in which every byte is visible, and the sum of its bytes.
fn picture(number: u32) -> (Vec<u8>, u64) {
    let len = SIDE * SIDE * 3;
    let pixels: Vec<u8> = (0..u64::from(len)).map(|place| byte(place + u64::from(number * len))).collect();
    let mut file = b"BM".to_vec();
    // File header: length, reserved, offset of the pixels. Then BITMAPINFOHEADER.
    for field in [54 + len, 0, 54, 40, SIDE, SIDE, 1 | 24 << 16, 0, len, 2835, 2835, 0, 0] {
        file.extend(field.to_le_bytes());
    }
    let sum = pixels.iter().map(|byte| u64::from(*byte)).sum();
    file.extend(pixels);
    (file, sum)
}

/// A page that reports how many of its pictures have the correct pixels.
fn page(folder: &Path) {
    let mut images = String::new();
    for number in 0..IMAGES {
        let (file, sum) = picture(number);
        fs::write(folder.join(format!("{number}.bmp")), file).unwrap();
        images += &format!("<img src='{number}.bmp' data-sum='{sum}'>\n");
    }
    let script = "onload = () => {
        let intact = 0;
        for (const image of document.images) {
            const canvas = document.createElement('canvas');
            canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
            const context = canvas.getContext('2d');
            context.drawImage(image, 0, 0);
            const pixels = context.getImageData(0, 0, canvas.width, canvas.height).data;
            let sum = 0;
            for (let i = 0; i < pixels.length; i++) if (i % 4 < 3) sum += pixels[i];
            intact += sum == image.dataset.sum;
        }
        document.body.append('intact: ' + intact + ';');
    }";
    let page = format!("<!doctype html><body><script>{script}</script>\n{images}</body>");
    fs::write(folder.join("page.html"), page).unwrap();
}

#[test]
fn a_browser_shows_all_pictures_of_a_page() {
    let Some(_machine) = machine(&["nginx", "chromium"]) else { return };
    let (folder, _) = served(1);
    page(folder.path());
    // The hop's network has neither DNS nor a route to the Internet, so the browser must not contact its vendor's
    // servers.
    let browser = "timeout 60 chromium --headless --no-sandbox --disable-gpu --disable-background-networking \
        --user-data-dir=$PWD/profile --proxy-server=$http_proxy --dump-dom http://198.18.0.1/page.html > dom.html 2> browser.log";
    let report = run(folder.path(), "10 %", &through_proxy(browser));
    let dom = fs::read_to_string(folder.path().join("dom.html")).unwrap();
    assert!(dom.contains(&format!("intact: {IMAGES};")), "{dom}");
    let served = lines(folder.path());
    let pictures: Vec<_> =
        served.iter().filter(|served| served["url"].as_str().unwrap().ends_with(".bmp")).collect();
    assert_eq!(pictures.len(), IMAGES as usize, "{served:?}");
    let holes: u64 = pictures.iter().map(|served| served["holes"].as_u64().unwrap()).sum();
    println!("{IMAGES} pictures, {holes} holes; {}", report["fwp"]);
    assert!(holes > 20, "{served:?}");
}
