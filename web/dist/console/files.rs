&[
    ("assets/chunk-LFR3AYNT.js", include_bytes!("assets/chunk-LFR3AYNT.js")),
    ("assets/console-043D827B.css", include_bytes!("assets/console-043D827B.css")),
    ("assets/console-2JKUEXTI.js", include_bytes!("assets/console-2JKUEXTI.js")),
    ("assets/icon-A78D62FA.svg", include_bytes!("assets/icon-A78D62FA.svg")),
    ("assets/page-UFHQVZWE.js", include_bytes!("assets/page-UFHQVZWE.js")),
    ("index.html", include_bytes!("index.html")),
]
