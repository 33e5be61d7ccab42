&[
    ("assets/chunk-VD6QSO3F.js", include_bytes!("assets/chunk-VD6QSO3F.js")),
    ("assets/console-043D827B.css", include_bytes!("assets/console-043D827B.css")),
    ("assets/console-Z2DGZZUI.js", include_bytes!("assets/console-Z2DGZZUI.js")),
    ("assets/icon-A78D62FA.svg", include_bytes!("assets/icon-A78D62FA.svg")),
    ("assets/page-BTIJWVYV.js", include_bytes!("assets/page-BTIJWVYV.js")),
    ("index.html", include_bytes!("index.html")),
]
