&[
    ("assets/chunk-KT3R3BPS.js", include_bytes!("assets/chunk-KT3R3BPS.js")),
    ("assets/console-043D827B.css", include_bytes!("assets/console-043D827B.css")),
    ("assets/console-FVNEUZLX.js", include_bytes!("assets/console-FVNEUZLX.js")),
    ("assets/icon-A78D62FA.svg", include_bytes!("assets/icon-A78D62FA.svg")),
    ("assets/page-FFYUEGDQ.js", include_bytes!("assets/page-FFYUEGDQ.js")),
    ("index.html", include_bytes!("index.html")),
]
