showSummary();
showLayers();
showTime();
showGraph();
showHost();
showCells();
